"""List filters that several model admins share.

Their choices come from small tables or from code, never from a scan of the listed table.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from decisions.foundation.presentation.words import word
from decisions.models import Workspace

_SPANS = {
    "hour": (_("Last hour"), timedelta(hours=1)),
    "day": (_("Last 24 hours"), timedelta(days=1)),
    "week": (_("Last 7 days"), timedelta(days=7)),
    "month": (_("Last 30 days"), timedelta(days=30)),
}


def midnight(now: datetime, days_ago: int = 0) -> datetime:
    """Return the start of a day in UTC, the zone of all filters: today's, or of a day before."""
    start = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return start - timedelta(days=days_ago)


class ChoiceFilter(SimpleListFilter):
    """Keeps the rows whose `field` has the chosen value, or which fulfil `condition`.

    Attributes:
        options: the values that can be chosen, with their labels.
    """

    field: ClassVar[str] = ""
    options: ClassVar[Iterable[tuple[Any, Any]]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = word(str(self.title))

    def lookups(
        self, request: HttpRequest, model_admin: ModelAdmin[Any]
    ) -> Iterable[tuple[str, str]]:
        """Return the options."""
        return [(str(value), word(str(label))) for value, label in self.options]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows with the chosen value."""
        value = self.value()
        return queryset.filter(self.condition(value)) if value else queryset

    def condition(self, value: str) -> Q:
        """Return the condition of the rows with a value."""
        return Q((self.field, value))


class EndedFilter(ChoiceFilter):
    """Keeps the rows whose time `field` is null with the first option, else those that have it."""

    title = _("state")
    parameter_name = "state"

    def condition(self, value: str) -> Q:
        """Return the condition of the rows with a state."""
        (lasting, _), *_ = self.options
        return Q((f"{self.field}__isnull", value == lasting))


class WorkspaceFilter(ChoiceFilter):
    """Filter by workspace; hidden while there is only one."""

    title = _("workspace")
    parameter_name = "workspace"
    field = "workspace_id"

    def lookups(
        self, request: HttpRequest, model_admin: ModelAdmin[Any]
    ) -> Iterable[tuple[str, str]]:
        """Return the workspaces as `tenant / name`."""
        workspaces = list(
            Workspace.objects.select_related("tenant").order_by("tenant__name", "name")[:200]
        )
        if len(workspaces) < 2:
            return []
        return [(workspace.id, workspace_label(workspace)) for workspace in workspaces]


class TimeFilter(SimpleListFilter):
    """Filter by the time when the row was created."""

    title = _("time")
    parameter_name = "time"
    field: ClassVar[str] = "created_at"

    def lookups(
        self, request: HttpRequest, model_admin: ModelAdmin[Any]
    ) -> Iterable[tuple[str, str]]:
        """Return the time ranges."""
        return [
            *((key, str(label)) for key, (label, _) in _SPANS.items()),
            ("yesterday", str(_("Yesterday (UTC)"))),
            ("older", str(_("Older than 30 days"))),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows of the chosen time range."""
        since, before = self.bounds()
        bounds = {f"{self.field}__gte": since, f"{self.field}__lt": before}
        return queryset.filter(**{name: at for name, at in bounds.items() if at is not None})

    def bounds(self) -> tuple[datetime | None, datetime | None]:
        """Return the start and the end of the chosen range; None for an open side."""
        now, chosen = datetime.now(UTC), self.value() or ""
        if chosen == "yesterday":
            return midnight(now, 1), midnight(now)
        if chosen == "older":
            return None, now - _SPANS["month"][1]
        return (now - _SPANS[chosen][1], None) if chosen in _SPANS else (None, None)


def workspace_label(workspace: Workspace) -> str:
    """Return `tenant / workspace`, or one name where both are the same."""
    tenant = workspace.tenant.name
    return workspace.name if tenant == workspace.name else f"{tenant} / {workspace.name}"
