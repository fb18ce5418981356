"""The context of a run's page, read in a fixed number of queries for a run of any size."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db.models import Count, QuerySet
from django.db.models.fields.json import KT
from django.http import HttpRequest

from artifacts.models import RESULT, Artifact
from decisions.admin.filters import workspace_label
from decisions.foundation.presentation.formatting import duration, one_line, pretty_json
from decisions.foundation.security.logs import redact
from decisions.models import AuditEntry, Token, Workspace
from runners.actions.typed_text import hide_typed_text
from runs.admin.new_run.views import again_url
from runs.admin.runs import result as runs_result
from runs.admin.runs import waterfall
from runs.admin.runs.columns import (
    done_percent,
    elapsed_ms,
    is_waiting,
    label_chips,
    state_pill,
    template_name,
)
from runs.admin.runs.conversation import conversation, described, usage_figures
from runs.admin.runs.player import moments, pictures_of
from runs.admin.runs.questions import question_of
from runs.admin.runs.waits import Wait, list_waits, waited_ms
from runs.models import (
    ACTIVE,
    RETRIABLE,
    Run,
    RunEvent,
    RunStatus,
    RunStep,
    Slot,
    StepStatus,
    Worker,
)
from runs.queries.runs import queue_position
from runs.task_templates.registry import get_template

STEPS = 100  # per page of the timeline
EVENTS = 100  # per page of the log
ARTIFACTS = 100
AUDIT_ROWS = 30
AGAIN = 5  # runs with the same inputs, submitted again
LIVE_MS = 2000
GOAL = 4000  # characters of an agent's goal in its conversation
_SHOWN_SEPARATELY = frozenset({"step", "name", "url", "durationMs"})


def run_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    """Return the context of a run's page and of its live parts."""
    now = datetime.now(UTC)
    active = run.status in ACTIVE
    waits = list_waits(run)
    steps = _steps(request, run, waits, now)
    talk = conversation(run, steps["timeline"].bars)
    if talk:
        steps["timeline"] = described(steps["timeline"], talk)
    bars = steps["timeline"].bars
    pictures = pictures_of(request, run, bars)
    return {
        "run": run,
        "live_ms": LIVE_MS if active else 0,
        "query": request.GET.urlencode(),
        **_header(run, now),
        **_times(run, waits, now),
        "steps": steps,
        "conversation": talk,
        "usage": usage_figures(run) if talk else [],
        "goal": redact(str(run.inputs.get("goal", "")))[:GOAL] if talk else "",
        "player": {
            "pictures": pictures,
            "moments": moments(bars, pictures, shares_page=_shares_page(run)),
        },
        "result": runs_result.result_context(run.result, run.error),
        "inputs": pretty_json(hide_typed_text(run.inputs)),
        "options": pretty_json(run.options) if run.options else "",
        "artifacts": _artifacts(request, run),
        "log": _events(request, run),
        "audit": _audit(request, run),
    }


# --- header -------------------------------------------------------------------------------------


def _header(run: Run, now: datetime) -> dict[str, Any]:
    workspace = Workspace.objects.select_related("tenant").filter(id=run.workspace_id).first()
    return {
        "name": template_name(run.template_id),
        "labels": label_chips(run),
        "is_waiting": is_waiting(run),
        "question": question_of(run),
        "state": state_pill(run),
        "share": done_percent(run),
        "active_time": duration(run.active_ms),
        "caller": _caller(run),
        "workspace": workspace_label(workspace) if workspace else run.workspace_id,
        "submitted_again": list(
            Run.objects.filter(again_of=run.id).order_by("-created_at", "-id")[:AGAIN]
        ),
        "retried_as": Run.objects.filter(retry_of=run.id).values_list("id", flat=True).first(),
        "may_cancel": run.status in ACTIVE,
        "may_retry": run.status in RETRIABLE and not (run.holds_secrets or run.task_id),
        "again_url": again_url(run),
        "error": _error(run),
        "actions": [
            {
                "tool": action.get("tool", ""),
                "args": one_line(action.get("args") or {}),
                "reason": action.get("reason", ""),
            }
            for action in run.next_actions
        ],
        "queue": _queue(run) if run.status == RunStatus.QUEUED else None,
        "lease": _lease(run),
    }


def _times(run: Run, waits: Sequence[Wait], now: datetime) -> dict[str, Any]:
    """Return how long the run was queued, worked, and waited for people."""
    queued_ms = ((run.started_at or run.ended_at or now) - run.created_at).total_seconds() * 1000
    elapsed, waited = elapsed_ms(run, now), waited_ms(waits, now)
    return {
        "queued": duration(max(0.0, queued_ms)),
        "worked": duration(None if elapsed is None else max(0.0, elapsed - waited)),
        "waited": duration(waited) if waits else "",
    }


def _shares_page(run: Run) -> bool:
    """Return whether all steps of a run work on one page."""
    template = get_template(run.template_id)
    return template is not None and template.shares_page


def _caller(run: Run) -> dict[str, str]:
    """Return who submitted the run; a token by its name."""
    kind, separator, name = run.principal_id.partition(":")
    if kind == "token" and separator:
        known = Token.objects.filter(id=name).values_list("name", flat=True).first()
        return {"kind": "token", "id": name, "name": known or name}
    if kind == "admin" and separator:
        return {"kind": "operator", "id": "", "name": name}
    return {
        "kind": "",
        "id": "",
        "name": "local" if run.principal_id == "local" else run.principal_id,
    }


def _error(run: Run) -> dict[str, Any] | None:
    if run.error is None:
        return None
    details = {
        key: value for key, value in (run.error.get("details") or {}).items() if key != "items"
    }
    return {
        "code": run.error.get("errorCode", ""),
        "message": run.error.get("message", ""),
        "recovery": run.error.get("recovery", ""),
        "step": run.error.get("step"),
        "details": pretty_json(details, limit=4000) if details else "",
    }


def _queue(run: Run) -> dict[str, Any]:
    workers = Worker.objects.filter(lost_at__isnull=True).exists()
    return {"position": queue_position(run), "workers": workers}


def _lease(run: Run) -> dict[str, Any]:
    """Return slot and worker of the run, and how long the run is stored."""
    slot = Slot.objects.filter(run_id=run.id).values_list("number", flat=True).first()
    worker = Worker.objects.filter(id=run.lease_owner).first() if run.lease_owner else None
    return {"slot": slot, "worker": worker, "retention_days": settings.RUN_RETENTION_DAYS}


# --- steps --------------------------------------------------------------------------------------


def _steps(request: HttpRequest, run: Run, waits: Sequence[Wait], now: datetime) -> dict[str, Any]:
    """Return a page of the timeline, and the number of steps per status."""
    counts = dict(
        RunStep.objects.filter(run_id=run.id).values_list("status").annotate(number=Count("id"))
    )
    total = sum(counts.values())
    rows = RunStep.objects.filter(run_id=run.id).order_by("index")
    chosen = request.GET.get("steps", "")
    if chosen in StepStatus.values:
        rows, total = rows.filter(status=chosen), counts.get(chosen, 0)
    else:
        chosen = ""
    page = _page_number(request, "sp", _current_page(run, rows, total))
    shown = list(
        rows.defer("output", "input", "effect_key").annotate(
            title=KT("output__title"),
            failed_call=KT("output__error__code"),
            kind=KT("input__kind"),
        )[page * STEPS : (page + 1) * STEPS]
    )
    timeline = waterfall.draw(
        shown,
        created_at=run.created_at,
        began_at=run.started_at,
        ended_at=run.ended_at,
        now=now,
        waits=waits,
    )
    return {
        "timeline": timeline,
        "counts": [
            {
                "status": status,
                "word": waterfall.status_word(status, has_ended=run.ended_at is not None),
                "number": number,
            }
            for status, number in sorted(counts.items())
        ],
        "total": sum(counts.values()),
        "chosen": chosen,
        **_paging(page, STEPS, total, len(shown)),
    }


def _current_page(run: Run, rows: QuerySet[RunStep], total: int) -> int:
    """Return the page of the started step of an active run; the first page otherwise."""
    if run.status not in ACTIVE or total <= STEPS:
        return 0
    index = rows.filter(status=StepStatus.STARTED).values_list("index", flat=True).first()
    return (index or 0) // STEPS


def _page_number(request: HttpRequest, name: str, default: int) -> int:
    number = request.GET.get(name, "")
    return int(number) if number.isdecimal() and len(number) <= 6 else default


def _paging(page: int, length: int, total: int, shown: int) -> dict[str, Any]:
    first = page * length
    return {
        "page": page,
        "first": first + 1,
        "last": first + shown,
        "of": total,
        "previous": page - 1 if page > 0 else None,
        "next": page + 1 if first + length < total else None,
    }


# --- artifacts and events -----------------------------------------------------------------------


def _artifacts(request: HttpRequest, run: Run) -> dict[str, Any]:
    if not request.user.has_perm("artifacts.view_artifact"):
        return {}
    rows = Artifact.objects.filter(run_id=run.id).order_by("created_at", "id")
    shown = list(rows[: ARTIFACTS + 1])
    result = [row for row in shown if row.kind == RESULT]
    rest = [row for row in shown[:ARTIFACTS] if row.kind != RESULT]
    return {
        "rows": [*result, *rest],
        "more": len(shown) > ARTIFACTS,
    }


def _events(request: HttpRequest, run: Run) -> dict[str, Any]:
    """Return a page of the events, by default the last; `seq` has no gaps, so nothing is
    counted.
    """
    last_page = max(0, (run.last_seq - 1) // EVENTS)
    page = min(_page_number(request, "ep", last_page), last_page)
    rows = RunEvent.objects.filter(
        run_id=run.id, seq__gt=page * EVENTS, seq__lte=(page + 1) * EVENTS
    ).order_by("seq")
    events = [_event(row, run) for row in rows]
    return {"events": events, **_paging(page, EVENTS, run.last_seq, len(events))}


def _event(row: RunEvent, run: Run) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "type": row.type,
        "at": row.at,
        "offset": duration(max(0.0, (row.at - run.created_at).total_seconds() * 1000)),
        "tone": row.type.rpartition(".")[2],
        "line": _line(row.data),
        "data": row.data,
    }


def _line(data: dict[str, Any]) -> str:
    """Return an event's data on one line; steps are numbered from 1, as in the timeline."""
    rest = {key: value for key, value in data.items() if key not in _SHOWN_SEPARATELY}
    if isinstance(data.get("delta"), str):  # output of a runner's tool
        rest = {"output": data["delta"]}
    parts = [
        f"step {data['step'] + 1}" if isinstance(data.get("step"), int) else "",
        str(data.get("url") or data.get("name") or ""),
        duration(data["durationMs"]) if isinstance(data.get("durationMs"), int) else "",
        one_line(rest),
    ]
    return " · ".join(part for part in parts if part)


def _audit(request: HttpRequest, run: Run) -> dict[str, Any]:
    if not request.user.has_perm("decisions.view_auditentry"):
        return {}
    rows = AuditEntry.objects.filter(resource_id=run.id, resource_type="run").order_by("-id")
    shown = list(rows[: AUDIT_ROWS + 1])
    return {"rows": shown[:AUDIT_ROWS], "more": len(shown) > AUDIT_ROWS}
