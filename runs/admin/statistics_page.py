"""The page with plots of runs, durations, queue, failures, steps, usage and slots over time."""

from __future__ import annotations

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from decisions.admin.filters import workspace_label
from decisions.models import Workspace
from runs.statistics.series import RANGES, statistics
from runs.task_templates.registry import list_templates

DEFAULT_RANGE = "24h"
WORKSPACES_SHOWN = 200
LIVE_MS = 10_000


def statistics_page(request: HttpRequest) -> HttpResponse:
    """Show the plots; the page's script requests their values.

    Raises:
        PermissionDenied: The user may not view runs.
    """
    _require_view(request)
    context = {
        **admin.site.each_context(request),
        "title": _("Statistics"),
        "ranges": _ranges(),
        "chosen": _chosen(request),
        "workspaces": _workspaces(),
        "templates": sorted(template.template_id for template in list_templates()),
        "plots": _plots(),
        "live_ms": LIVE_MS,
    }
    return TemplateResponse(request, "admin/runs/statistics/page.html", context)


def statistics_data(request: HttpRequest) -> HttpResponse:
    """Return the values of the plots as JSON.

    Raises:
        PermissionDenied: The user may not view runs.
    """
    _require_view(request)
    chosen = _chosen(request)
    series = statistics(
        chosen["range"], workspace_id=chosen["workspace"], template_id=chosen["template"]
    )
    return JsonResponse(series)


def _require_view(request: HttpRequest) -> None:
    if not request.user.has_perm("runs.view_run"):
        raise PermissionDenied


def _chosen(request: HttpRequest) -> dict[str, str]:
    """Return the requested range, workspace and template; the day for an unknown range."""
    wanted = request.GET.get("range", DEFAULT_RANGE)
    return {
        "range": wanted if wanted in RANGES else DEFAULT_RANGE,
        "workspace": request.GET.get("workspace", "").replace("\0", "")[:64],
        "template": request.GET.get("template", "").replace("\0", "")[:128],
    }


def _ranges() -> list[tuple[str, str]]:
    return [
        ("1h", _("1 hour")),
        ("6h", _("6 hours")),
        ("24h", _("24 hours")),
        ("7d", _("7 days")),
        ("30d", _("30 days")),
    ]


def _workspaces() -> list[tuple[str, str]]:
    """Return the workspaces, if there are several."""
    rows = Workspace.objects.select_related("tenant").order_by("tenant__name", "name")
    found = list(rows[:WORKSPACES_SHOWN])
    return [(row.id, workspace_label(row)) for row in found] if len(found) > 1 else []


def _plots() -> list[dict[str, str]]:
    """Return the plots: their names in plots.js, titles, what they show, and the filter of the runs
    behind them.
    """
    return [
        _plot("runs", _("Runs by status"), _("Ended runs, by the time when they were accepted")),
        _plot(
            "failureRate",
            _("Failure rate"),
            _("Failed runs of a template, over four points"),
            "status=failed",
        ),
        _plot("duration", _("Duration"), _("Running time of a run, without waits for people")),
        _plot("wait", _("Queue age"), _("From the acceptance of a run to its start")),
        _plot("slots", _("Slots in use"), _("Mean number of runs that execute, and longest queue")),
        _plot("steps", _("Steps by kind"), _("Steps of the runs that ended")),
        _plot("pages", _("Pages read"), _("Pages an hour")),
        _plot("tokens", _("Tokens"), _("Tokens of language models an hour")),
        _plot("cost", _("Cost"), _("US dollars, of model turns with a known price")),
    ]


def _plot(name: str, title: str, about: str, query: str = "") -> dict[str, str]:
    return {"name": name, "title": title, "about": about, "query": query}


def statistics_urls() -> list[URLPattern]:
    """Return the URLs of the page and of its values."""
    page, data = (
        admin.site.admin_view(never_cache(view)) for view in (statistics_page, statistics_data)
    )
    return [
        path("statistics/", page, name="statistics"),
        path("statistics/data/", data, name="statistics_data"),
    ]
