"""The audit log in the admin site: to read, to filter, never to write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from decisions.admin.file_responses import bundle_file
from decisions.admin.filters import TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.audit.chain import head_of_chain
from decisions.audit.query import TOOL_IN_SQL, export_audit, filter_by_time, filter_by_tool
from decisions.audit.record import is_genuine
from decisions.identity.principals import ensure_workspace
from decisions.models import AuditEntry, AuditSeal
from decisions.presentation.formatting import one_line, pretty_json
from decisions.presentation.html import code, link_about, link_to, moment, pill

# Every distinct value by hops through its index: a DISTINCT would read the whole log.
_HOPS = """
WITH RECURSIVE hop(value) AS (
    SELECT MIN({0}) FROM decisions_auditentry WHERE {0} IS NOT NULL
    UNION ALL
    SELECT (SELECT MIN({0}) FROM decisions_auditentry WHERE {0} > hop.value)
    FROM hop WHERE hop.value IS NOT NULL)
SELECT value FROM hop WHERE value IS NOT NULL LIMIT 200
"""


_REFUSALS = (".refused", ".sign_in_failed", ".denied")
_SOON = "A scheduler seals each row within a second; a row that is not ours is never sealed."


def occurring_actions() -> list[str]:
    """Return the actions that occur in the log."""
    return _occurring("action")


def occurring_tools() -> list[str]:
    """Return the tools that the log tells of."""
    return _occurring(TOOL_IN_SQL[connection.vendor] % {"expressions": "metadata"})


def _occurring(what: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_HOPS.format(what))
        return [value for (value,) in cursor.fetchall()]


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


class ToolFilter(SimpleListFilter):
    """By the tool that a row tells of."""

    title = "tool"
    parameter_name = "tool"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the tools that occur."""
        return [(tool, tool) for tool in occurring_tools()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one tool's rows."""
        tool = self.value()
        return filter_by_tool(queryset, tool) if tool else queryset


class AuditTimeFilter(TimeFilter):
    """By when it was."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows of a span."""
        return filter_by_time(queryset, *self.bounds())


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

    list_display = ("when", "what", "by", "about", "told", "sealed")
    list_filter = (ActionFilter, ToolFilter, RefusalFilter, WorkspaceFilter, AuditTimeFilter)
    ordering = ("-id",)
    search_fields = ("resource_id",)
    search_help_text = "An id, an action, a tool or an actor"
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
        "sealed",
        "link",
    )
    readonly_fields = fields
    list_before_template = "admin/decisions/auditentry/chain.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        """Return rows with their places in the chain."""
        rows: QuerySet[AuditEntry] = super().get_queryset(request)
        seal = AuditSeal.objects.filter(entry_id=OuterRef("id"))
        return rows.annotate(
            seal_position=Subquery(seal.values("position")), seal_hash=Subquery(seal.values("hash"))
        )

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, and that of the export before them."""
        export = self.admin_site.admin_view(self.export_view)
        return [path("export/", export, name="decisions_auditentry_export"), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, the end of the chain above it."""
        shown = {
            "chain": head_of_chain(),
            "export": f"{reverse('admin:decisions_auditentry_export')}?{request.GET.urlencode()}",
            **(extra_context or {}),
        }
        answer: HttpResponse = super().changelist_view(request, shown)
        return answer

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the rows that the list's filters keep as a file, with their chain."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        listed = self.get_changelist_instance(request)
        home = ensure_workspace()
        lines = export_audit(
            listed.queryset,
            actor=f"admin:{request.user.get_username()}",
            owner=(home.tenant_id, home.id),
            filters=dict(request.GET.items()),
        )
        return bundle_file(request, lines, "audit.jsonl")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Find rows by a whole id, action, tool or actor, all of them indexed."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if ":" in term or term in ("local", "reaper", "scheduler", "command", "anonymous"):
            return queryset.filter(actor=term), False
        if term in occurring_tools():
            return filter_by_tool(queryset, term), False
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
            "{} {}", entry.resource_type, link_about(entry.resource_type, entry.resource_id)
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

    @admin.display(description="Sealed")
    def sealed(self, entry: AuditEntry) -> SafeString:
        """Return the row's place in the chain."""
        position = getattr(entry, "seal_position", None)
        if position is None:
            return format_html('<span class="cty-dim" title="{}">{}</span>', _SOON, "not yet")
        return format_html('<span class="cty-num">{}</span>', f"{position:,}")

    @admin.display(description="Hash")
    def link(self, entry: AuditEntry) -> SafeString:
        """Return the hash of the row's link in the chain."""
        return code(getattr(entry, "seal_hash", None) or "–")
