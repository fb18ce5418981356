"""Filters of the lists: their choices come from small tables or from code, never from a scan of the
list's own table.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest

from decisions.models import Workspace

_SPANS = {
    "hour": ("Last hour", timedelta(hours=1)),
    "day": ("Last 24 hours", timedelta(days=1)),
    "week": ("Last 7 days", timedelta(days=7)),
    "month": ("Last 30 days", timedelta(days=30)),
}


class WorkspaceFilter(SimpleListFilter):
    """By workspace; not shown where there is only one."""

    title = "workspace"
    parameter_name = "workspace"
    field = "workspace_id"

    def lookups(
        self, request: HttpRequest, model_admin: ModelAdmin[Any]
    ) -> Iterable[tuple[str, str]]:
        """Return the workspaces, as tenant / name."""
        places = list(
            Workspace.objects.select_related("tenant").order_by("tenant__name", "name")[:200]
        )
        return [(place.id, workspace_label(place)) for place in places] if len(places) > 1 else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one workspace's rows."""
        return queryset.filter(**{self.field: self.value()}) if self.value() else queryset


class TimeFilter(SimpleListFilter):
    """By when the row was made."""

    title = "time"
    parameter_name = "time"
    field: ClassVar[str] = "created_at"

    def lookups(
        self, request: HttpRequest, model_admin: ModelAdmin[Any]
    ) -> Iterable[tuple[str, str]]:
        """Return the spans."""
        return [
            *((key, label) for key, (label, _) in _SPANS.items()),
            ("older", "Older than 30 days"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows of a span that ends now, or those before all spans."""
        since, before = self.bounds()
        if since is not None:
            return queryset.filter(**{f"{self.field}__gte": since})
        return queryset.filter(**{f"{self.field}__lt": before}) if before else queryset

    def bounds(self) -> tuple[datetime | None, datetime | None]:
        """Return since when and before when the chosen rows were made."""
        now, chosen = datetime.now(UTC), self.value() or ""
        if chosen == "older":
            return None, now - _SPANS["month"][1]
        return (now - _SPANS[chosen][1], None) if chosen in _SPANS else (None, None)


def workspace_label(place: Workspace) -> str:
    """Return a workspace's name, with its tenant's where that says something more."""
    tenant = place.tenant.name
    return place.name if tenant == place.name else f"{tenant} / {place.name}"
