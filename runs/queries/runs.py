"""Read runs, their events, templates and the runtime profile, within the caller's workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import orjson
from django.conf import settings
from django.db.models import Q

from artifacts.chunks import CHUNK_MAX
from decisions.foundation.infra.clock import to_ms
from decisions.foundation.next_actions import NextAction, next_action, next_actions_after
from decisions.identity.principals import Principal
from runs.lifecycle.in_flight_calls import WORKER_LOST
from runs.models import RETRIABLE, TERMINAL, Run, RunEvent, RunStatus, Task, TaskEvent
from runs.queries.visibility import visible_run, visible_run_with_artifacts
from runs.queue.session_lease import run_using
from runs.queue.slots import count_free_slots

Item = TypeVar("Item", bound=Mapping[str, Any])
_LOGS: tuple[tuple[Any, str], ...] = ((RunEvent, "run_id"), (TaskEvent, "task_id"))


def get_run(*, principal: Principal, run_id: str) -> dict[str, Any]:
    """Return the Run object (S0 §3.2).

    Raises:
        RunNotFound: As `visible_run`.
    """
    return get_run_and_seq(principal=principal, run_id=run_id)[0]


def get_run_and_seq(*, principal: Principal, run_id: str) -> tuple[dict[str, Any], int]:
    """Return the Run object and the seq of the run's last event, from which a caller can wait.

    Raises:
        RunNotFound: As `visible_run`.
    """
    principal.require("runs:read")
    run, artifact_ids = visible_run_with_artifacts(principal, run_id)
    data = run_object(run, artifact_ids)
    if run.status == RunStatus.QUEUED:
        data["queue"] = _queue(run)
    return data, run.last_seq


def get_run_row(*, principal: Principal, run_id: str) -> Run:
    """Return the run's row, from which a caller can wait without reading the rest of it.

    Raises:
        RunNotFound: As `visible_run`.
    """
    principal.require("runs:read")
    return visible_run(principal, run_id)


def take_within_bytes(items: Iterable[Item], max_bytes: int | None) -> list[Item]:
    """Return the first items that have at most `max_bytes` of JSON together, but at least one."""
    if max_bytes is None:
        return list(items)
    taken: list[Item] = []
    left = max_bytes
    for item in items:
        left -= len(orjson.dumps(item))
        if taken and left < 0:
            break
        taken.append(item)
    return taken


def queue_position(run: Run) -> int:
    """Return which run in the queue it is, counted from 1 in the order of submission."""
    ahead = Run.objects.filter(
        ended_at__isnull=True, ready=True, lease_owner__isnull=True, created_at__lt=run.created_at
    )
    return ahead.count() + 1


def _queue(run: Run) -> dict[str, Any]:
    return {"position": queue_position(run), "reason": _why_queued(run)}


def _why_queued(run: Run) -> str:
    other = None if run.owns_session else run_using(run.session_id)
    if other is not None:
        return f"its session {run.session_id} is used by the run {other}"
    return "waiting for a worker" if count_free_slots() else "all slots are taken"


def run_object(run: Run, artifact_ids: list[str]) -> dict[str, Any]:
    """Return the Run object (S0 §3.2) with the optional fields that apply."""
    data: dict[str, Any] = {
        "runId": run.id,
        "templateId": run.template_id,
        "sessionId": run.session_id,
        "ownsSession": run.owns_session,
        "status": run.status,
        "progress": {"doneSteps": run.done_steps, "totalSteps": run.total_steps},
        "metrics": {"elapsedMs": run.active_ms},
        "result": run.result,
        "error": run.error,
        "artifactIds": artifact_ids,
        "createdAt": to_ms(run.created_at),
        "updatedAt": to_ms(run.updated_at),
        "mode": run.mode,
        "templateVersion": run.template_version,
        "attempt": _attempt(run),
    }
    extras = {
        "subject": run.subject,
        "labels": run.labels,
        "waitingFor": run.waiting_for,
        "resultSummary": run.result_summary,
        "nextActions": _next_actions(run),
        "warnings": run.warnings,
        "retryOf": run.retry_of,
        "againOf": run.again_of,
    }
    return data | {name: value for name, value in extras.items() if value}


def _attempt(run: Run) -> int:
    """Return the number of the last attempt; a run that failed for its lost workers has no next."""
    details = (run.error or {}).get("details") or {}
    is_given_up = run.status == RunStatus.FAILED and details.get("causeCode") == WORKER_LOST
    return run.times_lost + (0 if is_given_up else 1)


def _next_actions(run: Run) -> Sequence[NextAction]:
    """Return the run's next actions; for a failed or canceled run without any, those that help with
    its error code, or reading its events.
    """
    if run.next_actions or run.status not in RETRIABLE:
        return list(run.next_actions)
    reason = "See step by step what was done and how it ended."
    read_events = next_action("subscribe_task_run_events", reason, runId=run.id)
    return next_actions_after((run.error or {}).get("errorCode", "")) or [read_events]


def list_events(
    *,
    principal: Principal,
    run_id: str,
    after: int = 0,
    limit: int = 100,
    max_bytes: int | None = None,
) -> dict[str, Any]:
    """Return {events, lastSeq, terminal} of the events after the seq `after`: at most `limit`, and
    at most `max_bytes` of JSON, but at least one.

    lastSeq is the seq of the last returned event, else `after`. terminal is true once the run has
    ended and the caller has its last event.

    Raises:
        RunNotFound: As `visible_run`.
    """
    return list_events_and_seq(
        principal=principal, run_id=run_id, after=after, limit=limit, max_bytes=max_bytes
    )[0]


def list_events_and_seq(
    *,
    principal: Principal,
    run_id: str,
    after: int = 0,
    limit: int = 100,
    max_bytes: int | None = None,
) -> tuple[dict[str, Any], int]:
    """Return the same as `list_events`, and the seq of the run's last event.

    Raises:
        RunNotFound: As `visible_run`.
    """
    principal.require("runs:read")
    run = visible_run(principal, run_id)
    # Events that were written after the run was read belong to the next page: `terminal` would be
    # wrong beside them.
    rows = RunEvent.objects.filter(run_id=run.id, seq__gt=after, seq__lte=run.last_seq)
    objects = (event_object(row) for row in rows.order_by("seq")[:limit])
    events = take_within_bytes(objects, max_bytes)
    last = events[-1]["seq"] if events else after
    page = {
        "events": events,
        "lastSeq": last,
        "terminal": run.status in TERMINAL and last >= run.last_seq,
    }
    return page, run.last_seq


def event_object(row: RunEvent | TaskEvent) -> dict[str, Any]:
    """Return the event object of the API."""
    return {"seq": row.seq, "type": row.type, "at": to_ms(row.at), "data": row.data}


def read_logs(spans: Mapping[str, tuple[int, int]]) -> dict[str, list[dict[str, Any]]]:
    """Return the events of several runs and tasks by id, in order.

    Checks no access: for the event hub, whose readers were authorized before.

    Args:
        spans: by id, the seqs (after, up to): events after the first one, up to the second.
    """
    events: dict[str, list[dict[str, Any]]] = {}
    for model, owner in _LOGS:
        in_spans = Q()
        for id_, (after, upto) in spans.items():
            if _is_task(id_) == (owner == "task_id"):
                in_spans |= Q(**{owner: id_}, seq__gt=after, seq__lte=upto)
        for row in model.objects.filter(in_spans).order_by(owner, "seq") if in_spans else ():
            events.setdefault(getattr(row, owner), []).append(event_object(row))
    return events


def last_seqs(ids: Sequence[str]) -> dict[str, int]:
    """Return the last seq of each run or task by id; deleted ones are left out."""
    seqs = dict(Run.objects.filter(id__in=ids).values_list("id", "last_seq"))
    tasks = Task.objects.filter(id__in=list(filter(_is_task, ids)))
    return seqs | dict(tasks.values_list("id", "last_seq"))


def _is_task(id_: str) -> bool:
    return id_.startswith("task_")


def get_runtime_profile(*, principal: Principal) -> dict[str, Any]:
    """Return the runtime's limits and the caller's trust level (S0 §4.5)."""
    principal.require("runs:read")
    return {
        "maxConcurrentRuns": settings.MAX_CONCURRENT_RUNS,
        "maxUrls": settings.MAX_URLS,
        "maxTabsPerSession": settings.MAX_TABS_PER_SESSION,
        "syncTimeoutMs": settings.SYNC_TIMEOUT_MS,
        "asyncTimeoutMs": settings.ASYNC_TIMEOUT_MS,
        "artifactMaxChunkSize": CHUNK_MAX,
        "artifactTtlMs": settings.ARTIFACT_TTL_MS,
        "runTtlMs": settings.RUN_TTL_MS,
        "supportedModes": ["sync", "async", "auto"],
        "trustLevel": principal.trust,
        "isRemote": principal.trust == "remote",
    }
