"""The admin's first page: what runs, what waits for a person, what failed lately, and who works."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models.fields.json import KT
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache

from decisions.admin.decisions import time_left, title_of
from decisions.models import Confirmation, ConfirmationStatus
from decisions.presentation.formatting import duration
from runs.admin.heartbeats import beats
from runs.admin.last_day import last_day
from runs.admin.runs.columns import state_pill, took_ms, waiting
from runs.admin.runs.questions import question_of
from runs.models import ACTIVE, Run, RunStatus, Slot, Worker

LIVE_MS = 2000
ROWS = 10
MARKS = 40  # slots that are drawn one by one
QUEUE_SHOWN = 999  # more are told as 999+: a long queue is not counted every two seconds
_LONG = ("inputs", "options", "result", "warnings", "next_actions")


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Return the context of the first page: Unfold's, and ours."""
    return context | _now(request) | {"title": "Dashboard"}


def live_dashboard(request: HttpRequest) -> HttpResponse:
    """Answer the parts of the first page that change, for the page to put in."""
    return TemplateResponse(request, "admin/runs/dashboard/parts.html", _now(request))


def _now(request: HttpRequest) -> dict[str, Any]:
    if not request.user.has_perm("runs.view_run"):
        return {"may_see_runs": False, "live_ms": 0, "deciding_number": 0}
    now = datetime.now(UTC)
    deciding = _deciding(request)
    recent = list(_lean(Run.objects.order_by("-created_at", "-id"))[:ROWS])
    under_way = Run.objects.filter(ended_at__isnull=True)  # by the index run_not_ended
    running = under_way.filter(status=RunStatus.RUNNING).order_by("-created_at", "-id")
    others = [_row(run, now) for run in _lean(_others(running, deciding))[:ROWS]]
    queued = len(under_way.filter(status=RunStatus.QUEUED).values("id")[: QUEUE_SHOWN + 1])
    return {
        "may_see_runs": True,
        "live_ms": LIVE_MS,
        "is_empty": not recent,
        "running": [_row(run, now) for run in _lean(running.filter(ready=True))[: ROWS * 2]],
        "deciding": deciding,
        "waiting": others,
        "waits_for_you": len(deciding) + len(others),
        "has_inbox": _has_inbox(request, deciding, others),
        "failed": [_row(run, now) for run in _failed_lately()],
        "recent": [_row(run, now) for run in recent],
        "queued": f"{QUEUE_SHOWN}+" if queued > QUEUE_SHOWN else str(queued),
        "is_queueing": queued > 0,
        "slots": _slots(),
        "workers": _workers() if request.user.has_perm("runs.view_worker") else None,
        "nobody_works": not Worker.objects.filter(lost_at__isnull=True).exists(),
        "day": last_day(),
        "places": _places(request),
    }


def _deciding(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the decisions that wait for a person, those that expire first first."""
    if not request.user.has_perm("decisions.view_decision"):
        return []
    asked = Confirmation.objects.select_related("decision").filter(
        status=ConfirmationStatus.WAITING, expires_at__gt=datetime.now(UTC)
    )
    return [
        {
            "decision": row.decision,
            "what": title_of(row.decision),
            "expires": time_left(row),
        }
        for row in asked.order_by("expires_at")[:ROWS]
    ]


def _has_inbox(request: HttpRequest, deciding: list[Any], others: list[dict[str, Any]]) -> bool:
    """Tell whether the inbox has something for this operator."""
    asks = any(question_of(row["run"]) for row in others)
    return bool(deciding) or (asks and request.user.has_perm("decisions.view_decision"))


def _others(running: Any, deciding: list[dict[str, Any]]) -> Any:
    """Return the runs that wait for a person over something else than these decisions."""
    told = [row["decision"].run_id for row in deciding if row["decision"].run_id]
    return waiting(running).exclude(id__in=told)


def _lean(runs: Any) -> Any:
    return runs.defer(*_LONG)


def _failed_lately() -> list[Run]:
    """Return the newest runs that failed, without what may be long in their error."""
    rows = Run.objects.filter(status=RunStatus.FAILED).order_by("-created_at", "-id")
    return list(
        rows.defer(*_LONG, "error").annotate(
            error_code=KT("error__errorCode"),
            recovery=KT("error__recovery"),
            message=KT("error__message"),
        )[:5]
    )


def _row(run: Run, now: datetime) -> dict[str, Any]:
    share = 100 * run.done_steps / run.total_steps if run.total_steps else 0
    return {
        "run": run,
        "state": state_pill(run),
        "share": round(min(share, 100), 1),
        "took": duration(took_ms(run, now)),
    }


def _slots() -> dict[str, Any]:
    taken = Slot.objects.filter(run_id__isnull=False).count()
    all_of_them = settings.MAX_CONCURRENT_RUNS
    marks = ["yes"] * taken + ["no"] * max(0, all_of_them - taken)
    return {
        "taken": taken,
        "all": all_of_them,
        "free": max(0, all_of_them - taken),
        "marks": marks[:MARKS],
    }


def _workers() -> list[dict[str, Any]]:
    rows = list(Worker.objects.filter(lost_at__isnull=True).order_by("-started_at")[:ROWS])
    busy = Run.objects.filter(lease_owner__in=[row.id for row in rows], status__in=ACTIVE)
    held: dict[str, int] = {}
    for owner in busy.values_list("lease_owner", flat=True):
        held[str(owner)] = held.get(str(owner), 0) + 1
    beats.keep_only({row.id for row in rows})
    return [{"worker": row, "runs": held.get(row.id, 0), **_pulse(row)} for row in rows]


def _pulse(worker: Worker) -> dict[str, Any]:
    silent_s = beats.silent_s(worker.id, worker.beat)
    late = silent_s is not None and silent_s > 3 * settings.LEASE_BEAT_S
    if silent_s is None:
        told = f"beat {worker.beat}"
    elif late:
        told = f"no beat for {silent_s:.0f} s"
    else:
        told = f"beat {worker.beat}, {silent_s:.0f} s ago"
    return {"late": late, "told": told}


def _places(request: HttpRequest) -> dict[str, str]:
    """Return what a newcomer's commands need: where this server is."""
    return {"base_url": f"{request.scheme}://{request.get_host()}"}


def _live_urls() -> list[URLPattern]:
    """Return the live parts' address; Unfold's site puts it before its own."""
    view = admin.site.admin_view(never_cache(live_dashboard))
    return [path("live/", view, name="live_dashboard")]


admin.site.index_template = "admin/runs/dashboard/page.html"
admin.site.extra_urls = _live_urls  # type: ignore[attr-defined]
