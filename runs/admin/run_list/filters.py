"""Filters and orders of the list of runs.

Equal values are matched by the index of terms (`runs.search`), so that a rare value is found among
millions of runs without reading them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from decisions.admin.filters import ChoiceFilter, TimeFilter, WorkspaceFilter
from decisions.foundation.errors import InvalidInput
from decisions.foundation.presentation.words import word
from runs.models import HOST_ACTION, Run, RunStatus
from runs.queries.run_search import waiting_runs
from runs.search.labels import parse_labels
from runs.search.matching import Term, matching
from runs.search.terms import Kind, facet, label_facet
from runs.task_templates.registry import list_templates

WAITING = "waiting"
SHOWN = "shown"
# The condition of the index run_newest_submitted, written out: with a parameter in it, SQLite would
# not use the index.
_SUBMITTED = f'NOT ("runs_run"."template_id" = \'{HOST_ACTION}\')'
_DURATIONS = {
    "1s": (_("Over 1 s"), 1_000),
    "10s": (_("Over 10 s"), 10_000),
    "1min": (_("Over 1 min"), 60_000),
    "10min": (_("Over 10 min"), 600_000),
    "1h": (_("Over 1 h"), 3_600_000),
}
# The orders: their label and their columns.
ORDERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "newest": (_("Newest first"), ("-created_at", "-id")),
    "oldest": (_("Oldest first"), ("created_at", "id")),
    "longest": (_("Longest first"), ("-active_ms", "-id")),
    "shortest": (_("Shortest first"), ("active_ms", "id")),
}
BY_DURATION = ("longest", "shortest")


class RunStatusFilter(SimpleListFilter):
    """Filter by status; "waiting for a person" keeps the suspended runs."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the statuses of S0, and waiting for a person."""
        statuses = [(one, capfirst(word(one.replace("_", " ")))) for one in RunStatus.values]
        return [*statuses, (WAITING, gettext("Waiting for a person"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Keep the runs with the chosen status."""
        if self.value() == WAITING:
            return waiting_runs(queryset)
        return queryset.filter(status=self.value()) if self.value() else queryset


class TemplateFilter(ChoiceFilter):
    """Filter by template, among the installed ones."""

    title = _("template")
    parameter_name = "template"
    field = "template_id"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the template ids with the templates' names."""
        return [
            (template.template_id, f"{gettext(template.name)} ({template.template_id})")
            for template in list_templates()
        ]


class _TextFilter(SimpleListFilter):
    """A filter by a text that the operator enters."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return no choices."""
        return []

    def has_output(self) -> bool:
        """Return True: without choices too, the filter is applied."""
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Keep the runs that the text names; none if it is malformed."""
        text = (self.value() or "").strip()
        if not text:
            return queryset
        try:
            return self.keep(queryset, text)
        except (InvalidInput, ValueError):
            return queryset.none()

    def keep(self, runs: QuerySet[Run], text: str) -> QuerySet[Run]:
        """Return the runs that the text names.

        Raises:
            InvalidInput, ValueError: It is malformed.
        """
        raise NotImplementedError


class _FacetFilter(_TextFilter):
    kind: ClassVar[Kind]

    def keep(self, runs: QuerySet[Run], text: str) -> QuerySet[Run]:
        """Return the runs with this value."""
        return matching(runs, [[Term(facet(self.kind, text))]])


class ErrorFilter(_FacetFilter):
    """Filter by error code or cause."""

    title = _("error code")
    parameter_name = kind = "error"


class SiteFilter(_FacetFilter):
    """Filter by the host of the page that the run failed on."""

    title = _("failed on")
    parameter_name = kind = "site"


class UserFilter(_FacetFilter):
    """Filter by the user for whom the run was submitted."""

    title = _("user")
    parameter_name = kind = "user"


class CallerFilter(_FacetFilter):
    """Filter by who submitted the run: the id of a token, or a principal's id."""

    title = _("token")
    parameter_name = "token"
    kind = "principal"

    def keep(self, runs: QuerySet[Run], text: str) -> QuerySet[Run]:
        """Return the runs of a token, or of another principal."""
        return super().keep(runs, f"token:{text}" if text.startswith("tok_") else text)


class LabelFilter(_TextFilter):
    """Filter by labels, `name=value`."""

    title = _("label")
    parameter_name = "label"

    def keep(self, runs: QuerySet[Run], text: str) -> QuerySet[Run]:
        """Return the runs with all these labels."""
        terms = [label_facet(name, value) for name, value in parse_labels(text).items()]
        return matching(runs, [[Term(term)] for term in terms])


class SinceFilter(_TextFilter):
    """Filter by the time from which on runs were accepted."""

    title = _("from")
    parameter_name = "since"

    def keep(self, runs: QuerySet[Run], text: str) -> QuerySet[Run]:
        """Return the runs that were accepted at this time or later."""
        return runs.filter(created_at__gte=_time_of(text))


class UntilFilter(_TextFilter):
    """Filter by the time before which runs were accepted."""

    title = _("until")
    parameter_name = "until"

    def keep(self, runs: QuerySet[Run], text: str) -> QuerySet[Run]:
        """Return the runs that were accepted before this time."""
        return runs.filter(created_at__lt=_time_of(text))


class DurationFilter(SimpleListFilter):
    """Filter by the time that an ended run worked."""

    title = _("duration")
    parameter_name = "duration"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        """Return the durations."""
        return [(key, label) for key, (label, _ms) in _DURATIONS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Keep the runs that worked longer."""
        _label, over_ms = _DURATIONS.get(self.value() or "", ("", -1))
        if over_ms < 0:
            return queryset
        return queryset.filter(ended_at__isnull=False, active_ms__gt=over_ms)


class OrderFilter(SimpleListFilter):
    """The order of the list; by duration, it has ended runs only."""

    title = _("order")
    parameter_name = "sort"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        """Return the orders."""
        return [(name, label) for name, (label, _columns) in ORDERS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Keep the ended runs if they are ordered by duration."""
        return queryset.filter(ended_at__isnull=False) if self.value() in BY_DURATION else queryset


class HostActionsFilter(SimpleListFilter):
    """Leaves the browser actions of agent hosts out, each of which is a run, unless it is asked for
    them: by this filter, their template, an id, or as what waits for a person.
    """

    title = _("browser actions of agent hosts")
    parameter_name = "actions"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        """Return the choices."""
        return [(SHOWN, _("Shown"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Leave them out."""
        if are_host_actions_shown(request):
            return queryset
        return queryset.filter(RawSQL(_SUBMITTED, (), output_field=BooleanField()))  # noqa: S611  (a constant)


def are_host_actions_shown(request: HttpRequest) -> bool:
    """Return whether the requested list has browser actions of agent hosts."""
    query = request.GET.get("q", "").strip()
    return (
        request.GET.get("actions") == SHOWN
        or bool(request.GET.get("template"))
        or request.GET.get("status") == WAITING
        or query.partition("_")[0] in ("run", "sess", "art", "wrk")
    )


def _time_of(text: str) -> datetime:
    """Return the time of an ISO date or time, or of Unix milliseconds; UTC without a zone.

    Raises:
        ValueError: It is none.
    """
    if text.isascii() and text.isdigit() and len(text) > 8:
        try:
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        except (OverflowError, OSError) as error:
            raise ValueError(text) from error
    at = parse_datetime(text.replace(" ", "T"))
    if at is None and (day := parse_date(text)) is not None:
        at = datetime(day.year, day.month, day.day, tzinfo=UTC)
    if at is None:
        raise ValueError(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


FILTERS: tuple[type[admin.ListFilter], ...] = (
    RunStatusFilter,
    TemplateFilter,
    WorkspaceFilter,
    TimeFilter,
    SinceFilter,
    UntilFilter,
    LabelFilter,
    ErrorFilter,
    SiteFilter,
    CallerFilter,
    UserFilter,
    DurationFilter,
    HostActionsFilter,
    OrderFilter,
)
