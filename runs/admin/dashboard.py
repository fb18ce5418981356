"""The dashboard: running, waiting, failed and latest runs, slots and workers."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models.fields.json import KT
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from decisions.foundation.infra.redis import describe_redis_fault
from decisions.foundation.presentation.formatting import duration
from decisions.foundation.presentation.words import word
from runs.admin.change_stream import change_stream_urls
from runs.admin.runs.columns import done_percent, elapsed_ms, state_pill, template_name
from runs.admin.statistics_page import statistics_urls
from runs.admin.waiting_rows import waiting_decisions, waiting_run_rows
from runs.models import ACTIVE, Run, RunStatus, Slot, Worker
from runs.operations.health.processes import ProcessState, ProcessStatus, list_processes
from runs.statistics.series import summary

LIVE_MS = 2000
ROWS = 10
MARKS = 40  # slots that are drawn individually
QUEUE_SHOWN = 999  # a longer queue is shown as 999+ and not counted every two seconds
_LONG = ("inputs", "options", "result", "warnings", "next_actions")


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Return the context of the dashboard (UNFOLD's DASHBOARD_CALLBACK)."""
    return context | _now(request) | {"title": _("Dashboard"), "shows_plots": True}


def live_dashboard(request: HttpRequest) -> HttpResponse:
    """Return the parts of the dashboard that change; the page's script updates them.

    Raises:
        PermissionDenied: The user may not view runs; the script then reloads the page.
    """
    if not request.user.has_perm("runs.view_run"):
        raise PermissionDenied
    return TemplateResponse(request, "admin/runs/dashboard/parts.html", _now(request))


def _now(request: HttpRequest) -> dict[str, Any]:
    if not request.user.has_perm("runs.view_run"):
        return {"may_see_runs": False, "live_ms": 0, "waiting_count": 0}
    now = datetime.now(UTC)
    decisions = waiting_decisions(request)
    recent = list(_without_long_fields(Run.objects.order_by("-created_at", "-id"))[:ROWS])
    unfinished = Run.objects.filter(ended_at__isnull=True)  # by the index run_not_ended
    running = unfinished.filter(status=RunStatus.RUNNING).order_by("-created_at", "-id")
    waiting_runs = waiting_run_rows(running, decisions)
    queued = len(unfinished.filter(status=RunStatus.QUEUED).values("id")[: QUEUE_SHOWN + 1])
    return {
        "may_see_runs": True,
        "live_ms": LIVE_MS,
        "is_empty": not recent and not decisions,
        "running": [
            _row(run, now) for run in _without_long_fields(running.filter(ready=True))[: ROWS * 2]
        ],
        "decisions": decisions,
        "waiting": waiting_runs,
        "waits": [*decisions, *waiting_runs],
        "waiting_count": len(decisions) + len(waiting_runs),
        "has_inbox": _has_inbox(request, decisions, waiting_runs),
        "failed": [_row(run, now) for run in _recent_failures()],
        "recent": [_row(run, now) for run in recent],
        "queued": f"{QUEUE_SHOWN}+" if queued > QUEUE_SHOWN else str(queued),
        "is_queueing": queued > 0,
        "slots": _slots(),
        "workers": _processes() if request.user.has_perm("runs.view_worker") else None,
        "has_no_redis": describe_redis_fault() is not None,
        "has_no_worker": not Worker.objects.filter(lost_at__isnull=True).exists(),
        "day": _last_day(),
        "base_url": f"{request.scheme}://{request.get_host()}",
    }


def _last_day() -> dict[str, Any]:
    """Return the numbers of the last 24 hours, from the statistics."""
    day = summary()
    return day | {"mean": "–" if day["mean_ms"] is None else duration(day["mean_ms"])}


def _has_inbox(
    request: HttpRequest, decisions: list[Any], waiting_runs: list[dict[str, Any]]
) -> bool:
    """Return whether the inbox shows something to this user."""
    has_question = any(row["is_question"] for row in waiting_runs)
    return bool(decisions) or (has_question and request.user.has_perm("decisions.view_decision"))


def _without_long_fields(runs: Any) -> Any:
    return runs.defer(*_LONG)


def _recent_failures() -> list[Run]:
    """Return the newest failed runs with the short parts of their errors."""
    rows = Run.objects.filter(status=RunStatus.FAILED).order_by("-created_at", "-id")
    return list(
        rows.defer(*_LONG, "error").annotate(
            recovery=KT("error__recovery"),
            message=KT("error__message"),
        )[:5]
    )


def _row(run: Run, now: datetime) -> dict[str, Any]:
    return {
        "run": run,
        "template": template_name(run.template_id),
        "state": state_pill(run),
        "share": done_percent(run),
        "took": duration(elapsed_ms(run, now)),
    }


def _slots() -> dict[str, Any]:
    taken = Slot.objects.filter(run_id__isnull=False).count()
    total = settings.MAX_CONCURRENT_RUNS
    marks = ["yes"] * taken + ["no"] * max(0, total - taken)
    return {
        "taken": taken,
        "total": total,
        "free": max(0, total - taken),
        "marks": marks[:MARKS],
    }


def _processes() -> list[dict[str, Any]]:
    """Return the processes that run or hang: workers with their runs, schedulers and web."""
    shown = (ProcessState.HUNG, ProcessState.RUNNING)
    found = [one for one in list_processes() if one.state in shown]
    found.sort(key=lambda one: (shown.index(one.state), one.kind != "worker"))
    workers = [one.id for one in found if one.kind == "worker"]
    busy = Run.objects.filter(lease_owner__in=workers, status__in=ACTIVE)
    runs = Counter(busy.values_list("lease_owner", flat=True))
    return [
        {
            "process": one,
            "kind": word(one.kind),
            "runs": runs[one.id] if one.kind == "worker" else None,
            "is_late": one.state == ProcessState.HUNG,
            "heartbeat": _heartbeat(one),
        }
        for one in found[:ROWS]
    ]


def _heartbeat(process: ProcessStatus) -> str:
    seconds = {"seconds": f"{process.silent_s:.0f}"}
    if process.state == ProcessState.HUNG:
        return _("hung: no heartbeat for %(seconds)s s") % seconds
    return _("heartbeat %(seconds)s s ago") % seconds


def _live_urls() -> list[URLPattern]:
    """Return the URL of the live parts; Unfold's site adds it to its own URLs."""
    view = admin.site.admin_view(never_cache(live_dashboard))
    return [path("live/", view, name="live_dashboard"), *change_stream_urls(), *statistics_urls()]


admin.site.index_template = "admin/runs/dashboard/page.html"
admin.site.extra_urls = _live_urls  # type: ignore[attr-defined]
