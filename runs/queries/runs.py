"""Reading runs and events, always within the caller's workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import orjson
from django.conf import settings
from django.db.models import Q, QuerySet

from artifacts.chunks import CHUNK_MAX
from artifacts.selectors import artifact_ids_of
from decisions.identity.principals import Principal
from decisions.infra.clock import to_ms
from decisions.next_actions import NextAction, next_action, next_actions_after
from runs.lifecycle.session_lease import run_using
from runs.lifecycle.slots import count_free_slots
from runs.models import RETRIABLE, TERMINAL, Run, RunEvent, RunStatus, Task, TaskEvent
from runs.queries.totals import count_visible
from runs.queries.visibility import visible_run
from runs.task_templates.registry import get_template, list_templates
from runs.task_templates.truncation import shorten_result

Item = TypeVar("Item", bound=Mapping[str, Any])
LISTED_RESULT_BYTES = 2048  # of a run's result in a list
_LOGS: tuple[tuple[Any, str], ...] = ((RunEvent, "run_id"), (TaskEvent, "task_id"))
_UNREAD = ("inputs", "options")  # columns that no answer shows


def get_run(*, principal: Principal, run_id: str) -> dict[str, Any]:
    """Return the S0 Run object (S0 §3.2 and runs.md).

    Raises:
        RunNotFound: Unknown, past its time, or another workspace's.
    """
    return get_run_and_seq(principal=principal, run_id=run_id)[0]


def get_run_and_seq(*, principal: Principal, run_id: str) -> tuple[dict[str, Any], int]:
    """Return the same with the seq of the run's last event: who waits for more waits from there.

    Raises:
        RunNotFound: As `get_run`.
    """
    principal.require("runs:read")
    run = visible_run(principal, run_id)
    shown = run_object(run, artifact_ids_of([run.id]).get(run.id, []))
    if run.status == RunStatus.QUEUED:
        shown["queue"] = _queue(run)
    return shown, run.last_seq


def list_runs(
    *,
    principal: Principal,
    status: str | None = None,
    template_id: str | None = None,
    limit: int = 50,
    offset: int = 0,
    max_bytes: int | None = None,
) -> dict[str, Any]:
    """Return {runs, total, hasMore, nextCursor}: newest first, ties by id; total counts all that
    match (S0 §4.3).

    Results over LISTED_RESULT_BYTES are shortened. With `max_bytes` the page ends before the run
    that would exceed them, but has one run at least; nextCursor is the offset to go on at.
    """
    principal.require("runs:read")
    over = datetime.now(UTC) - timedelta(milliseconds=settings.RUN_TTL_MS)
    counted, overdue = count_visible(
        principal.workspace_id, status=status, template_id=template_id, over=over
    )
    total = counted - overdue
    rows = Run.objects.filter(workspace_id=principal.workspace_id, hidden_at__isnull=True)
    if status is not None:
        rows = rows.filter(status=status)
    if template_id is not None:
        rows = rows.filter(template_id=template_id)
    if overdue:
        rows = rows.filter(Q(ended_at__isnull=True) | Q(ended_at__gt=over))
    page = _page(rows, offset, min(limit, total - offset), total)
    named = artifact_ids_of(run.id for run in page)
    shown = take_within_bytes((_listed(run, named.get(run.id, [])) for run in page), max_bytes)
    more = bool(shown) and offset + len(shown) < total
    return {
        "runs": shown,
        "total": total,
        "hasMore": more,
        "nextCursor": str(offset + len(shown)) if more else None,
    }


def take_within_bytes(items: Iterable[Item], max_bytes: int | None) -> list[Item]:
    """Return the first items, as many as have at most `max_bytes` together, but at least one."""
    if max_bytes is None:
        return list(items)
    shown: list[Item] = []
    left = max_bytes
    for item in items:
        left -= len(orjson.dumps(item))
        if shown and left < 0:
            break
        shown.append(item)
    return shown


def _listed(run: Run, artifact_ids: list[str]) -> dict[str, Any]:
    """Return a run as lists show it: what it found is cut short, the whole is an artifact."""
    shown = run_object(run, artifact_ids)
    if run.result is not None and artifact_ids:
        template = get_template(run.template_id)
        schema = template.result_schema if template else None
        shown["result"] = shorten_result(run.result, LISTED_RESULT_BYTES, artifact_ids[0], schema)
    return shown


def _page(rows: QuerySet[Run], offset: int, size: int, total: int) -> list[Run]:
    """Return `size` runs from `offset` on, newest first.

    Skipping reads the index alone, from whichever end of the list is nearer.
    """
    if size <= 0:
        return []
    behind = total - offset - size
    if offset <= behind:
        ids = rows.order_by("-created_at", "-id").values("id")[offset : offset + size]
    else:
        ids = rows.order_by("created_at", "id").values("id")[behind : behind + size]
    return list(Run.objects.filter(id__in=ids).order_by("-created_at", "-id").defer(*_UNREAD))


def _queue(run: Run) -> dict[str, Any]:
    ahead = Run.objects.filter(
        ended_at__isnull=True, ready=True, lease_owner__isnull=True, created_at__lt=run.created_at
    ).count()
    return {"position": ahead + 1, "reason": _why_queued(run)}


def _why_queued(run: Run) -> str:
    user = None if run.owns_session else run_using(run.session_id)
    if user is not None:
        return f"its session {run.session_id} is used by the run {user}"
    return "waiting for a worker" if count_free_slots() else "all slots are taken"


def run_object(run: Run, artifact_ids: list[str]) -> dict[str, Any]:
    """Return a run as S0 §3.2 shows it, with the optional fields that apply."""
    shown: dict[str, Any] = {
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
        "attempt": run.times_lost + 1,
    }
    extras = {
        "waitingFor": run.waiting_for,
        "resultSummary": run.result_summary,
        "nextActions": _next_actions(run),
        "warnings": run.warnings,
        "retryOf": run.retry_of,
    }
    return shown | {name: value for name, value in extras.items() if value}


def _next_actions(run: Run) -> Sequence[NextAction]:
    """Return the calls that the run's end named; after a bad end that named none, one that helps
    with its code, or tells what happened.
    """
    if run.next_actions or run.status not in RETRIABLE:
        return list(run.next_actions)
    told = "See step by step what was done and how it ended."
    look = next_action("subscribe_task_run_events", told, runId=run.id)
    return next_actions_after((run.error or {}).get("errorCode", "")) or [look]


def list_events(
    *,
    principal: Principal,
    run_id: str,
    after: int = 0,
    limit: int = 100,
    max_bytes: int | None = None,
) -> dict[str, Any]:
    """Return {events, lastSeq, terminal} of the events behind `after`, fewer than `limit` where
    they have more than `max_bytes`, but one at least.

    lastSeq is the last returned, else `after`; terminal is true only once the final event was
    returned, or is known to the caller already (mechanisms 23).

    Raises:
        RunNotFound: As `get_run`.
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
    """Return the same with the seq of the run's last event, as far as it is known.

    Raises:
        RunNotFound: As `get_run`.
    """
    principal.require("runs:read")
    run = visible_run(principal, run_id)
    rows = RunEvent.objects.filter(run_id=run.id, seq__gt=after).order_by("seq")[:limit]
    events = take_within_bytes((event_object(row) for row in rows), max_bytes)
    last = events[-1]["seq"] if events else after
    page = {
        "events": events,
        "lastSeq": last,
        "terminal": run.status in TERMINAL and last >= run.last_seq,
    }
    return page, max(run.last_seq, last if events else 0)


def event_object(row: RunEvent | TaskEvent) -> dict[str, Any]:
    """Return a line of a log as its readers see it."""
    return {"seq": row.seq, "type": row.type, "at": to_ms(row.at), "data": row.data}


def read_logs(spans: Mapping[str, tuple[int, int]]) -> dict[str, list[dict[str, Any]]]:
    """Return events by run or task, in order: those behind the first seq of a span, up to the last.

    For the event hub, which hands them to readers whose right to the run was checked.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for rows, owner in _LOGS:
        wanted = Q()
        for id_, (after, upto) in spans.items():
            if _is_task(id_) == (owner == "task_id"):
                wanted |= Q(**{owner: id_}, seq__gt=after, seq__lte=upto)
        for row in rows.objects.filter(wanted).order_by(owner, "seq") if wanted else ():
            found.setdefault(getattr(row, owner), []).append(event_object(row))
    return found


def last_seqs(ids: Sequence[str]) -> dict[str, int]:
    """Return how far the log of each run or task goes; what is gone is not among them."""
    seqs = dict(Run.objects.filter(id__in=ids).values_list("id", "last_seq"))
    tasks = Task.objects.filter(id__in=list(filter(_is_task, ids)))
    return seqs | dict(tasks.values_list("id", "last_seq"))


def _is_task(id_: str) -> bool:
    return id_.startswith("task_")


def list_task_templates(*, principal: Principal) -> dict[str, Any]:
    """Return every template with its schemas."""
    principal.require("runs:read")
    return {
        "templates": [template.describe() for template in list_templates()],
        "hasMore": False,
        "nextCursor": None,
    }


def get_runtime_profile(*, principal: Principal) -> dict[str, Any]:
    """Return the runtime's limits as this caller meets them (S0 §4.5)."""
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


def has_active_runs() -> bool:
    """Tell whether any run, in any workspace, is queued or running."""
    return Run.objects.filter(ended_at__isnull=True).exists()
