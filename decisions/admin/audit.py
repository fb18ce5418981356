"""The audit log in the admin site: to read, to filter, never to write."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from decisions.admin.filters import TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.audit import is_genuine
from decisions.labels import code, link_to, moment, pill
from decisions.models import AuditEntry
from decisions.wording import one_line, pretty_json

# Every distinct action by hops through the index (action, id): a DISTINCT would read the whole log.
_ACTIONS = """
WITH RECURSIVE hop(action) AS (
    SELECT MIN(action) FROM decisions_auditentry
    UNION ALL
    SELECT (SELECT MIN(action) FROM decisions_auditentry WHERE action > hop.action)
    FROM hop WHERE hop.action IS NOT NULL)
SELECT action FROM hop WHERE action IS NOT NULL LIMIT 200
"""


_REFUSALS = (".refused", ".sign_in_failed")
_SKEW = timedelta(hours=1)


def occurring_actions() -> list[str]:
    """Return the actions that occur in the log."""
    with connection.cursor() as cursor:
        cursor.execute(_ACTIONS)
        return [action for (action,) in cursor.fetchall()]


class ActionFilter(SimpleListFilter):
    """By action."""

    title = "action"
    parameter_name = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the actions that occur."""
        return [(action, action) for action in occurring_actions()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one action's rows."""
        return queryset.filter(action=self.value()) if self.value() else queryset


class AuditTimeFilter(TimeFilter):
    """By when it was. Rows are shown in the order of their ids, so the span is a span of ids too:
    found by one look at the index of times, an hour wider for the sake of clocks that differ.
    """

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows of a span."""
        kept = super().queryset(request, queryset)
        since, before = self.bounds()
        rows = AuditEntry.objects.values_list("id", flat=True)
        if since is not None:
            first = rows.filter(created_at__gte=since - _SKEW).order_by("created_at").first()
            return kept.filter(id__gte=first) if first is not None else kept.none()
        if before is not None:
            last = rows.filter(created_at__lt=before + _SKEW).order_by("-created_at").first()
            return kept.filter(id__lte=last) if last is not None else kept.none()
        return kept


class RefusalFilter(SimpleListFilter):
    """Refusals alone."""

    title = "outcome"
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the one choice beside all."""
        return [("refused", "Refusals only")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows whose action says that something was refused or failed to be allowed."""
        if self.value() != "refused":
            return queryset
        refusals = [name for name in occurring_actions() if name.endswith(_REFUSALS)]
        return queryset.filter(action__in=refusals)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Newest first; a row says when, what, by whom, about what."""

    list_display = ("when", "what", "by", "about", "told")
    list_filter = (ActionFilter, RefusalFilter, WorkspaceFilter, AuditTimeFilter)
    ordering = ("-id",)
    search_fields = ("resource_id",)
    search_help_text = "An id, an action or an actor"
    fields = (
        "when",
        "exactly",
        "what",
        "by",
        "about",
        "workspace_id",
        "tenant_id",
        "facts",
        "genuine",
    )
    readonly_fields = fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Find rows by a whole id or action, both indexed, or by a whole actor."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if ":" in term or term in ("local", "reaper", "scheduler", "command", "anonymous"):
            return queryset.filter(actor=term), False
        if "." in term:
            return queryset.filter(action=term), False
        return queryset.filter(resource_id=term), False

    @admin.display(description="When")
    def when(self, entry: AuditEntry) -> SafeString:
        """Return when it was."""
        return moment(entry.created_at)

    @admin.display(description="Exactly")
    def exactly(self, entry: AuditEntry) -> str:
        """Return when it was, to the microsecond."""
        return f"{entry.created_at:%Y-%m-%d %H:%M:%S.%f} UTC"

    @admin.display(description="Action")
    def what(self, entry: AuditEntry) -> SafeString:
        """Return the action, refusals in another colour."""
        refused = entry.action.endswith(_REFUSALS)
        return pill(entry.action, "failed" if refused else "neutral")

    @admin.display(description="By")
    def by(self, entry: AuditEntry) -> SafeString:
        """Return who did it."""
        kind, mark, name = entry.actor.partition(":")
        if mark and kind in ("token", "worker"):
            return format_html("{} {}", kind, link_to(kind, name))
        return code(entry.actor)

    @admin.display(description="About")
    def about(self, entry: AuditEntry) -> SafeString:
        """Return what the row is about, as a link where it has a page."""
        return format_html(
            "{} {}", entry.resource_type, link_to(entry.resource_type, entry.resource_id)
        )

    @admin.display(description="Told")
    def told(self, entry: AuditEntry) -> SafeString:
        """Return the metadata on one line."""
        return format_html(
            '<span class="cty-dim cty-clip">{}</span>', one_line(entry.metadata, 110)
        )

    @admin.display(description="Metadata")
    def facts(self, entry: AuditEntry) -> SafeString:
        """Return the metadata in full."""
        return format_html('<pre class="cty-pre">{}</pre>', pretty_json(entry.metadata))

    @admin.display(description="Written by us")
    def genuine(self, entry: AuditEntry) -> SafeString:
        """Return whether the row's MAC is this installation's."""
        if is_genuine(entry):
            return pill("genuine: its MAC is this installation's", "succeeded")
        return pill("not genuine: altered, or put in by other means", "failed")
