"""Columns, filters and search of the list of runs. Filters and search use indexed columns only."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from artifacts.models import Artifact
from decisions.admin.filters import ChoiceFilter
from decisions.presentation.formatting import duration, short_id, shorten
from decisions.presentation.html import moment, pill, status_pill
from runs.models import Run, RunStatus
from runs.task_templates.registry import list_templates

WAITING = "waiting"


class RunStatusFilter(SimpleListFilter):
    """Filter by status; "waiting for a person" keeps the suspended runs."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the statuses of S0, and waiting for a person."""
        statuses = [(status, status.replace("_", " ").capitalize()) for status in RunStatus.values]
        return [*statuses, (WAITING, "Waiting for a person")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Keep the runs with the chosen status."""
        if self.value() == WAITING:
            return waiting_runs(queryset)
        return queryset.filter(status=self.value()) if self.value() else queryset


class TemplateFilter(ChoiceFilter):
    """Filter by template, among the installed ones."""

    title = parameter_name = "template"
    field = "template_id"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the template ids."""
        return [(template.template_id, template.template_id) for template in list_templates()]


def waiting_runs(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return the suspended runs: those that wait for a person."""
    return runs.filter(
        ended_at__isnull=True, status=RunStatus.RUNNING, ready=False, waiting_for__isnull=False
    )


def status_links(chosen: str | None) -> list[dict[str, Any]]:
    """Return the links to the statuses that the page shows above the list."""
    statuses = [(status, status.replace("_", " ")) for status in RunStatus.values]
    choices = [("", "all"), *statuses[:2], (WAITING, "waiting for a person"), *statuses[2:]]
    return [
        {
            "value": value,
            "label": label,
            "is_chosen": value == (chosen or ""),
            "tone": value or "neutral",
        }
        for value, label in choices
    ]


def search(runs: QuerySet[Run], term: str) -> QuerySet[Run]:
    """Return the runs of a run id (or its start), a session id, an artifact id or a worker id."""
    prefix = term.partition("_")[0]
    if prefix == "art":
        return runs.filter(id__in=Artifact.objects.filter(id=term).values("run_id"))
    if prefix == "sess":
        # SQLite uses the partial index only if the query repeats its condition.
        return runs.filter(session_id=term, session_id__isnull=False)
    if prefix == "wrk":
        return runs.filter(lease_owner=term)
    start = term if prefix == "run" else f"run_{term}"
    if connection.vendor == "sqlite":  # a LIKE would not use the index
        return runs.filter(id__gte=start, id__lt=start + "\U0010ffff")
    return runs.filter(id__startswith=start)


def is_waiting(run: Run) -> bool:
    """Return whether the run is suspended: it waits for a person."""
    return run.status == RunStatus.RUNNING and not run.ready and run.waiting_for is not None


def state_pill(run: Run) -> SafeString:
    """Return the run's status as a coloured label; "waiting for a person" if it is suspended."""
    return pill("waiting for a person", WAITING) if is_waiting(run) else status_pill(run.status)


def elapsed_ms(run: Run, now: datetime | None = None) -> float | None:
    """Return the milliseconds from the run's start to its end or to now; None before its start."""
    if run.started_at is None:
        return None
    until = run.ended_at or now or datetime.now(UTC)
    return max(0.0, (until - run.started_at).total_seconds() * 1000)


def run_page(run_id: str) -> str:
    """Return the URL of a run's page."""
    return reverse("admin:runs_run_change", args=[run_id])


def done_percent(run: Run) -> float:
    """Return how many percent of the run's steps are done."""
    percent = 100 * run.done_steps / run.total_steps if run.total_steps else 0
    return round(min(percent, 100), 1)


class RunColumns:
    """The columns of the list of runs; a mixin of `RunAdmin`."""

    @admin.display(description="Status")
    def display_status(self, run: Run) -> SafeString:
        """Return the status as a coloured label."""
        return state_pill(run)

    @admin.display(description="Run")
    def display_run(self, run: Run) -> SafeString:
        """Return the template and the short id, as a link."""
        return format_html(
            '<a class="cty-run" href="{}" title="{}"><b>{}</b>'
            '<span class="cty-mono cty-dim">{}</span></a>',
            run_page(run.id),
            run.id,
            run.template_id,
            short_id(run.id),
        )

    @admin.display(description="Summary")
    def display_summary(self, run: Run) -> SafeString:
        """Return the one-line summary, after the error code of a failed run."""
        text = shorten(run.result_summary, 120)
        error_code = getattr(run, "error_code", None)
        if not error_code:
            return format_html('<span class="cty-clip">{}</span>', text)
        return format_html(
            '<span class="cty-clip"><span class="cty-code">{}</span> {}</span>', error_code, text
        )

    @admin.display(description="Progress")
    def display_progress(self, run: Run) -> SafeString:
        """Return a progress bar with the numbers of done and of all steps."""
        return format_html(
            '<span class="cty-progress" data-tone="{}"><i style="width:{}%"></i></span>'
            '<span class="cty-count">{} / {}</span>',
            run.status,
            done_percent(run),
            run.done_steps,
            run.total_steps,
        )

    @admin.display(description="Duration")
    def display_duration(self, run: Run) -> str:
        """Return the time from start to end, or until now."""
        return duration(elapsed_ms(run))

    @admin.display(description="Accepted")
    def display_created_at(self, run: Run) -> SafeString:
        """Return when the run was accepted."""
        return moment(run.created_at)
