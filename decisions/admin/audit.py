"""Admin pages of the audit log: the list with filters and export, and one row. Read-only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import (
    HttpRequest,
    HttpResponseNotAllowed,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from decisions.admin.acting import actor_of
from decisions.admin.columns import column
from decisions.admin.filters import ChoiceFilter, TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.audit.bundle import file_headers, in_batches
from decisions.audit.chain import head_of_chain
from decisions.audit.query import TOOL_IN_SQL, export_audit, filter_by_time, filter_by_tool
from decisions.audit.record import is_genuine
from decisions.audit.stored import fetch_stored
from decisions.foundation.presentation.formatting import one_line, pretty_json
from decisions.foundation.presentation.html import code, link_about, link_to, moment, pill
from decisions.foundation.presentation.words import word
from decisions.identity.principals import ensure_workspace
from decisions.models import AuditEntry, AuditSeal

# Distinct values by one index lookup per value; a DISTINCT would read the whole log.
_DISTINCT_SQL = """
WITH RECURSIVE distinct_values(value) AS (
    SELECT MIN({column}) FROM decisions_auditentry WHERE {column} IS NOT NULL
    UNION ALL
    SELECT (SELECT MIN({column}) FROM decisions_auditentry WHERE {column} > distinct_values.value)
    FROM distinct_values WHERE distinct_values.value IS NOT NULL)
SELECT value FROM distinct_values WHERE value IS NOT NULL LIMIT 200
"""
_REFUSAL_SUFFIXES = (".refused", ".sign_in_failed", ".sign_in_throttled", ".denied")
_UNREADABLE = format_html('<span class="cty-dim">{}</span>', "unreadable")
_UNSEALED_HINT = _(
    "The scheduler seals a row about a second after it is committed;"
    " it never seals a row whose MAC is wrong."
)


def occurring_actions() -> list[str]:
    """Return the distinct actions in the audit log, at most 200."""
    return _occurring("action")


def occurring_tools() -> list[str]:
    """Return the distinct tools in the audit log, at most 200."""
    return _occurring(TOOL_IN_SQL[connection.vendor] % {"expressions": "metadata"})


def _occurring(expression: str) -> list[str]:
    found = fetch_stored(_DISTINCT_SQL.format(column=expression), [])
    return [value for (value,) in found if str(value).isprintable()]  # text of SQLite can be none


class ActionFilter(ChoiceFilter):
    """Filter by action."""

    title = parameter_name = field = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the actions in the log."""
        return [(action, action) for action in occurring_actions()]


class ToolFilter(ChoiceFilter):
    """Filter by the tool named in a row's metadata."""

    title = _("tool")
    parameter_name = "tool"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the tools in the log."""
        return [(tool, tool) for tool in occurring_tools()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows of the chosen tool."""
        tool = self.value()
        return filter_by_tool(queryset, tool) if tool else queryset


class AuditTimeFilter(TimeFilter):
    """Filter by time, through the audit log's own index."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows of the chosen time range."""
        return filter_by_time(queryset, *self.bounds())


class RefusalFilter(ChoiceFilter):
    """Filter for refused calls and failed sign-ins."""

    title = _("outcome")
    parameter_name = "outcome"
    options = (("refused", _("Refusals only")),)

    def condition(self, value: str) -> Q:
        """Return the condition of the rows whose action records one."""
        refusals = [name for name in occurring_actions() if name.endswith(_REFUSAL_SUFFIXES)]
        return Q(action__in=refusals)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """The audit log, newest row first, with each row's position in the hash chain."""

    list_title = _("Audit log")
    list_empty = _("Each call, change and decision adds a row.")
    list_display = (
        "display_time",
        "display_action",
        "display_actor",
        "display_resource",
        "display_metadata_line",
        "display_position",
    )
    list_filter = (ActionFilter, ToolFilter, RefusalFilter, WorkspaceFilter, AuditTimeFilter)
    ordering = ("-id",)
    search_fields = ("resource_id",)
    search_help_text = _("An id, an action, a tool or an actor")
    fields = (
        "display_time",
        "display_exact_time",
        "display_action",
        "display_actor",
        "display_resource",
        "workspace_id",
        "tenant_id",
        "display_metadata",
        "display_mac_check",
        "display_position",
        "display_hash",
    )
    readonly_fields = fields
    list_before_template = "admin/decisions/auditentry/chain.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        """Return rows with their position and hash in the chain."""
        rows: QuerySet[AuditEntry] = super().get_queryset(request)
        seal = AuditSeal.objects.filter(entry_id=OuterRef("id"))
        return rows.annotate(
            seal_position=Subquery(seal.values("position")), seal_hash=Subquery(seal.values("hash"))
        )

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, with the export."""
        export = self.admin_site.admin_view(self.export_view)
        return [path("export/", export, name="decisions_auditentry_export"), *super().get_urls()]

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the head of the hash chain, and the address of the export of the listed rows."""
        export_url = f"{reverse('admin:decisions_auditentry_export')}?{request.GET.urlencode()}"
        return {"chain": head_of_chain(), "export_url": export_url}

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Return the filtered rows as a JSON Lines file, with their hash chain."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        changelist = self.get_changelist_instance(request)
        workspace = ensure_workspace()
        lines = export_audit(
            changelist.queryset,
            actor=actor_of(request),
            owner=(workspace.tenant_id, workspace.id),
            filters=dict(request.GET.items()),
        )
        return StreamingHttpResponse(in_batches(lines), headers=file_headers("audit.jsonl"))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Find rows by a complete resource id, action, tool or actor, through an index."""
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

    display_time = column(
        _("When"), lambda entry: moment(entry.created_at) if entry.created_at else _UNREADABLE
    )
    display_exact_time = column(
        _("Exact time"),
        lambda entry: (
            f"{entry.created_at:%Y-%m-%d %H:%M:%S.%f} UTC" if entry.created_at else _UNREADABLE
        ),
    )

    @admin.display(description=_("Action"))
    def display_action(self, entry: AuditEntry) -> SafeString:
        """Return the action as a coloured label; refusals are red."""
        refused = entry.action.endswith(_REFUSAL_SUFFIXES)
        return pill(entry.action, "failed" if refused else "neutral")

    @admin.display(description=_("By"))
    def display_actor(self, entry: AuditEntry) -> SafeString:
        """Return the actor, as a link where it has a page."""
        kind, separator, name = entry.actor.partition(":")
        if separator and kind in ("token", "worker"):
            return format_html("{} {}", word(kind), link_to(kind, name))
        return code(entry.actor)

    display_resource = column(
        _("Resource"),
        lambda entry: format_html(
            "{} {}", word(entry.resource_type), link_about(entry.resource_type, entry.resource_id)
        ),
    )
    display_metadata_line = column(
        _("Metadata"),
        lambda entry: format_html(
            '<span class="cty-dim cty-clip" lang="en">{}</span>', one_line(entry.metadata, 110)
        ),
    )
    display_metadata = column(
        _("Metadata"),
        lambda entry: format_html('<pre class="cty-pre">{}</pre>', pretty_json(entry.metadata)),
    )

    @admin.display(description=_("MAC"))
    def display_mac_check(self, entry: AuditEntry) -> SafeString:
        """Return whether the row's MAC is valid under this installation's keys."""
        if is_genuine(entry):
            return pill("valid: this installation wrote the row", "succeeded")
        return pill("invalid: the row was changed or inserted by other means", "failed")

    @admin.display(description=_("Sealed"))
    def display_position(self, entry: AuditEntry) -> SafeString:
        """Return the row's position in the hash chain."""
        position = getattr(entry, "seal_position", None)
        if position is None:
            return format_html(
                '<span class="cty-dim" title="{}">{}</span>', _UNSEALED_HINT, _("not yet")
            )
        return format_html('<span class="cty-num">{}</span>', f"{position:,}")

    display_hash = column(_("Hash"), lambda entry: code(getattr(entry, "seal_hash", None) or "–"))
