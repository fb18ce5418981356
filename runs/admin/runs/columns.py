"""What the list of runs shows of each, and by what it is filtered and searched: indexed columns
only.
"""

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
from decisions.presentation.formatting import duration, short_id, shorten
from decisions.presentation.html import moment, pill, status_pill
from runs.models import Run, RunStatus
from runs.task_templates.registry import list_templates

WAITING = "waiting"


class StatusFilter(SimpleListFilter):
    """By status; waiting for a person is a running run that nobody may go on with."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return S0's status words, and who waits."""
        words = [(status, status.replace("_", " ").capitalize()) for status in RunStatus.values]
        return [*words, (WAITING, "Waiting for a person")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Keep one status."""
        if self.value() == WAITING:
            return waiting(queryset)
        return queryset.filter(status=self.value()) if self.value() else queryset


class TemplateFilter(SimpleListFilter):
    """By template, of those installed here."""

    title = "template"
    parameter_name = "template"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the templates by id."""
        return [(template.template_id, template.template_id) for template in list_templates()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Keep one template's runs."""
        return queryset.filter(template_id=self.value()) if self.value() else queryset


def waiting(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return the runs that wait for a person."""
    return runs.filter(
        ended_at__isnull=True, status=RunStatus.RUNNING, ready=False, waiting_for__isnull=False
    )


def quick_filters(chosen: str | None) -> list[dict[str, Any]]:
    """Return the statuses as links above the list."""
    words = [(status, status.replace("_", " ")) for status in RunStatus.values]
    choices = [("", "all"), *words[:2], (WAITING, "waiting for a person"), *words[2:]]
    return [
        {"value": value, "label": label, "on": value == (chosen or ""), "tone": value or "neutral"}
        for value, label in choices
    ]


def search(runs: QuerySet[Run], term: str) -> QuerySet[Run]:
    """Return the runs that an id names: a run's (its beginning will do), a session's, an artifact's
    or a worker's.
    """
    prefix = term.partition("_")[0]
    if prefix == "art":
        return runs.filter(id__in=Artifact.objects.filter(id=term).values("run_id"))
    if prefix == "sess":
        # SQLite takes the partial index only where the condition is spelt out.
        return runs.filter(session_id=term, session_id__isnull=False)
    if prefix == "wrk":
        return runs.filter(lease_owner=term)
    whole = term if prefix == "run" else f"run_{term}"
    if connection.vendor == "sqlite":  # its LIKE uses no index here
        return runs.filter(id__gte=whole, id__lt=whole + "\U0010ffff")
    return runs.filter(id__startswith=whole)


def is_waiting(run: Run) -> bool:
    """Tell whether the run waits for a person."""
    return run.status == RunStatus.RUNNING and not run.ready and run.waiting_for is not None


def state_pill(run: Run) -> SafeString:
    """Return the run's status as a coloured label; one that waits for a person says so."""
    return pill("waits for a person", WAITING) if is_waiting(run) else status_pill(run.status)


def took_ms(run: Run, now: datetime | None = None) -> float | None:
    """Return how long the run has been worked on, from its start to its end or to now; None before
    its start.
    """
    if run.started_at is None:
        return None
    until = run.ended_at or now or datetime.now(UTC)
    return max(0.0, (until - run.started_at).total_seconds() * 1000)


def run_page(run_id: str) -> str:
    """Return the address of a run's page."""
    return reverse("admin:runs_run_change", args=[run_id])


class RunColumns:
    """The columns; a mixin of the run's admin."""

    @admin.display(description="Status")
    def state(self, run: Run) -> SafeString:
        """Return the status in its colour."""
        return state_pill(run)

    @admin.display(description="Run")
    def run(self, run: Run) -> SafeString:
        """Return template and id."""
        return format_html(
            '<a class="cty-run" href="{}" title="{}"><b>{}</b>'
            '<span class="cty-mono cty-dim">{}</span></a>',
            run_page(run.id),
            run.id,
            run.template_id,
            short_id(run.id),
        )

    @admin.display(description="Summary")
    def summary(self, run: Run) -> SafeString:
        """Return the one-line summary, with the code of what went wrong before it."""
        told = shorten(run.result_summary, 120)
        error_code = getattr(run, "error_code", None)
        if not error_code:
            return format_html('<span class="cty-clip">{}</span>', told)
        return format_html(
            '<span class="cty-clip"><span class="cty-code">{}</span> {}</span>', error_code, told
        )

    @admin.display(description="Progress")
    def progress(self, run: Run) -> SafeString:
        """Return a bar and the counts."""
        share = 100 * run.done_steps / run.total_steps if run.total_steps else 0
        return format_html(
            '<span class="cty-progress" data-tone="{}"><i style="width:{}%"></i></span>'
            '<span class="cty-count">{} / {}</span>',
            run.status,
            round(min(share, 100), 1),
            run.done_steps,
            run.total_steps,
        )

    @admin.display(description="Took")
    def took(self, run: Run) -> str:
        """Return how long it took, or has taken so far."""
        return duration(took_ms(run))

    @admin.display(description="Accepted")
    def accepted(self, run: Run) -> SafeString:
        """Return when it was accepted."""
        return moment(run.created_at)
