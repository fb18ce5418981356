"""Admin pages of user state (S2): objects with their versions, outcomes and evidence. Read-only."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Max, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from decisions.admin.filters import ChoiceFilter, TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.foundation.presentation.formatting import one_line, pretty_json, shorten
from decisions.foundation.presentation.html import code, link_to, moment, pill
from decisions.foundation.presentation.words import word
from decisions.memory.owner import Owner
from decisions.memory.state import AXES, read_state
from decisions.models import Evidence, Outcome, OutcomeStatus, User, UserObject

ROWS_SHOWN = 50
EMPTY = SafeString("–")
_TONES = {"success": "succeeded", "partial": "partial_success", "failed": "failed"}


class UserRecordAdmin(ReadOnlyAdmin):
    """Base class for rows that belong to a user; the search takes a complete user id."""

    search_fields = ("user_id",)
    search_help_text = _("A complete user id or obj_… id")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find rows by their user, or an object by its id."""
        term = search_term.strip()
        if not term:
            return queryset, False
        found = queryset.filter(user_id=term)
        if term.startswith("obj_"):
            found = queryset.filter(pk=term) if self.model is UserObject else queryset.none()
        return found, False

    @admin.display(description=_("User"))
    def display_user(self, row: Any) -> SafeString:
        """Return the user id, as a link to this list filtered by the user."""
        return _list_link(self.model._meta.model_name or "", row.user_id, row.workspace_id)


class ObjectTypeFilter(ChoiceFilter):
    """Filter objects by type: shell or success path."""

    title = _("type")
    parameter_name = "type"
    field = "object_type"
    options = (("shell", "Shell"), ("success_path", "Success path"))


class OutcomeFilter(admin.SimpleListFilter):
    """Filter by the reported status."""

    title = _("outcome")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the three statuses of S2, and pending."""
        return [
            *((str(v), word(str(label))) for v, label in OutcomeStatus.choices),
            ("none", str(_("Pending"))),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows with the chosen value."""
        if self.value() == "none":
            return queryset.filter(status__isnull=True)
        known = self.value() in OutcomeStatus.values
        return queryset.filter(status=self.value()) if known else queryset


@admin.register(UserObject)
class UserObjectAdmin(UserRecordAdmin):
    """Shells and success paths, the last written first, with their versions."""

    list_title = _("Objects")
    list_empty = _("What agents store about a user: shells, success paths, procedures.")
    list_display = ("name", "display_type", "display_user", "display_version", "display_written_at")
    list_filter = (ObjectTypeFilter, WorkspaceFilter)
    ordering = ("-updated_at", "-id")
    fields = (
        "name",
        "display_type",
        "display_id",
        "display_user",
        "display_written_at",
        "display_versions",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return objects with their newest version number."""
        rows: QuerySet[Any] = super().get_queryset(request)
        numbered: QuerySet[Any] = rows.annotate(newest=Max("versions__version"))
        return numbered

    @admin.display(description=_("Type"))
    def display_type(self, row: UserObject) -> SafeString:
        """Return the type as a label."""
        return pill(row.object_type.replace("_", " "), "neutral")

    @admin.display(description=_("Id"))
    def display_id(self, row: UserObject) -> SafeString:
        """Return the id."""
        return code(row.id)

    @admin.display(description=_("Version"))
    def display_version(self, row: Any) -> int:
        """Return the number of the newest version."""
        return int(row.newest)

    @admin.display(description=_("Written"))
    def display_written_at(self, row: UserObject) -> SafeString:
        """Return when the newest version was written."""
        return moment(row.updated_at)

    @admin.display(description=_("Versions"))
    def display_versions(self, row: UserObject) -> SafeString:
        """Return the newest versions, the current one unfolded."""
        newest = row.versions.order_by("-version")[:ROWS_SHOWN]
        return format_html_join(
            "",
            '<details class="cty-fold" {}><summary>{} {} · {} · {} {}, {} {} · {} {}</summary>'
            '<pre class="cty-pre">{}</pre></details>',
            (
                (
                    "open" if one.is_current else "",
                    _("Version"),
                    one.version,
                    moment(one.created_at),
                    _("confidence"),
                    word(one.confidence),
                    _("validity"),
                    word(one.validity),
                    _("by"),
                    one.written_by,
                    pretty_json(one.payload),
                )
                for one in newest
            ),
        )


@admin.register(Outcome)
class OutcomeAdmin(UserRecordAdmin):
    """Outcomes of decisions, newest first."""

    list_title = _("Outcomes")
    list_empty = _("Each message that an agent asks Continuity to judge opens an outcome.")
    list_display = (
        "display_status",
        "display_decision",
        "display_user",
        "display_note",
        "display_impact_error",
        "display_cost_error",
        "display_reported_at",
    )
    list_filter = (OutcomeFilter, WorkspaceFilter)
    ordering = ("-id",)
    fields = (
        "display_status",
        "display_decision",
        "display_user",
        "note",
        "display_system_caused",
        "failure_type",
        "layer",
        "display_impact_error",
        "display_cost_error",
        "reported_by",
        "display_reported_at",
        "display_expected",
        "display_actual",
        "display_proposal",
        "display_evidence",
    )
    readonly_fields = fields

    @admin.display(description=_("Outcome"))
    def display_status(self, row: Outcome) -> SafeString:
        """Return the reported status, or `pending`."""
        return pill(row.status, _TONES[row.status]) if row.status else pill("pending", "queued")

    @admin.display(description=_("Decision"))
    def display_decision(self, row: Outcome) -> SafeString:
        """Return the decision as a link."""
        return link_to("decision", str(row.decision_id))

    @admin.display(description=_("Note"))
    def display_note(self, row: Outcome) -> str:
        """Return the shortened note of the report."""
        return shorten(row.note, 80) or "–"

    @admin.display(description=_("Caused by the system"))
    def display_system_caused(self, row: Outcome) -> str:
        """Return whether the report names the system as the cause."""
        return word("yes" if row.system_caused else "no")

    @admin.display(description=_("Impact error"))
    def display_impact_error(self, row: Outcome) -> str:
        """Return the error of the impact forecast, 0..2."""
        return "–" if row.impact_error is None else f"{row.impact_error:.3f}"

    @admin.display(description=_("Cost error"))
    def display_cost_error(self, row: Outcome) -> str:
        """Return actual minus expected cost."""
        return "–" if row.cost_error is None else f"{row.cost_error:+.2f}"

    @admin.display(description=_("Reported"))
    def display_reported_at(self, row: Outcome) -> SafeString:
        """Return when it was reported."""
        return moment(row.reported_at)

    @admin.display(description=_("Expected"))
    def display_expected(self, row: Outcome) -> SafeString:
        """Return the forecast."""
        return _json(row.forecast)

    @admin.display(description=_("Actual"))
    def display_actual(self, row: Outcome) -> SafeString:
        """Return the actual impact and cost."""
        return _json({"impact": row.actual_impact, "cost": row.actual_cost})

    @admin.display(description=_("Proposed success path"))
    def display_proposal(self, row: Outcome) -> SafeString:
        """Return the success path that the caller proposed."""
        return _json(row.proposal) if row.proposal else EMPTY

    @admin.display(description=_("State changes"))
    def display_evidence(self, row: Outcome) -> SafeString:
        """Return the changes of the user's state after this decision."""
        changes = Evidence.objects.filter(decision_id=row.decision_id).order_by("id")[:ROWS_SHOWN]
        lines = format_html_join(
            "",
            "<div>{} {} → {}</div>",
            ((word(e.axis), e.value_before, e.value_after) for e in changes),
        )
        return lines or EMPTY


@admin.register(Evidence)
class EvidenceAdmin(UserRecordAdmin):
    """Evidence: the changes of users' states with their reasons, newest first."""

    list_title = _("Evidence")
    list_empty = _("Messages and reported outcomes change a user's state; each change is a row.")
    list_display = (
        "axis",
        "display_change",
        "source",
        "display_user",
        "display_decision",
        "note",
        "display_created_at",
    )
    list_filter = (WorkspaceFilter, TimeFilter)
    ordering = ("-id",)
    fields = (
        "axis",
        "display_change",
        "delta",
        "confidence",
        "source",
        "display_user",
        "display_decision",
        "note",
        "display_created_at",
    )
    readonly_fields = fields

    @admin.display(description=_("Change"))
    def display_change(self, row: Evidence) -> str:
        """Return the value before and after."""
        return f"{row.value_before:.3f} → {row.value_after:.3f}"

    @admin.display(description=_("Decision"))
    def display_decision(self, row: Evidence) -> SafeString:
        """Return the decision that caused the change, as a link."""
        return link_to("decision", str(row.decision_id)) if row.decision_id else EMPTY

    @admin.display(description=_("When"))
    def display_created_at(self, row: Evidence) -> SafeString:
        """Return when the evidence was recorded."""
        return moment(row.created_at)


def state_table(user: User) -> SafeString:
    """Return a user's state as a table with a row per axis; the main constraint is marked."""
    workspace = user.workspace
    state = read_state(Owner(workspace.tenant_id, workspace.id, user.user_id))
    rows = (
        (
            word(axis),
            state.axes[axis].value,
            f"{state.axes[axis].value:.3f}",
            _("confidence"),
            f"{state.axes[axis].confidence:.2f}",
            moment(state.axes[axis].updated_at),
            pill("main constraint", "waiting") if axis == state.main_constraint else "",
        )
        for axis in AXES
    )
    lines = format_html_join(
        "",
        '<tr><td>{}</td><td><meter min="0" max="1" value="{}"></meter></td><td>{}</td>'
        '<td class="cty-dim">{} {}</td><td>{}</td><td>{}</td></tr>',
        rows,
    )
    return format_html('<div class="cty-scroll"><table class="cty-axes">{}</table></div>', lines)


def record_links(user: User) -> SafeString:
    """Return links to the user's objects, outcomes and evidence."""
    parts = (
        ("userobject", _("Objects")),
        ("outcome", _("Outcomes")),
        ("evidence", _("Evidence")),
    )
    return format_html_join(
        " · ",
        "{}",
        (
            (_list_link(name, user.user_id, user.workspace_id, label=str(label)),)
            for name, label in parts
        ),
    )


def _list_link(
    model_name: str, user_id: str, workspace_id: str, *, label: str | None = None
) -> SafeString:
    query = urlencode({"q": user_id, "workspace": workspace_id})
    page = f"{reverse(f'admin:decisions_{model_name}_changelist')}?{query}"
    return format_html('<a class="cty-link" href="{}">{}</a>', page, label or user_id)


def _json(value: Any) -> SafeString:
    text = pretty_json(value) if isinstance(value, dict) else one_line(value)
    return format_html('<pre class="cty-pre">{}</pre>', text)
