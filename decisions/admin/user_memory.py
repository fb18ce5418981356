"""Admin pages of user state (S2): objects with their versions, outcomes and evidence. Read-only."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Max, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from decisions.admin.columns import column
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


class OutcomeFilter(ChoiceFilter):
    """Filter by the reported status."""

    title = _("outcome")
    parameter_name = "status"
    options = (*OutcomeStatus.choices, ("none", _("Pending")))

    def condition(self, value: str) -> Q:
        """Return the condition of the rows with a status."""
        return Q(status__isnull=True) if value == "none" else Q(status=value)


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

    display_type = column(_("Type"), lambda row: pill(row.object_type.replace("_", " "), "neutral"))
    display_id = column(_("Id"), lambda row: code(row.id))
    display_version = column(_("Version"), lambda row: int(row.newest))
    display_written_at = column(_("Written"), lambda row: moment(row.updated_at))

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

    display_status = column(
        _("Outcome"),
        lambda row: (
            pill(row.status, _TONES[row.status]) if row.status else pill("pending", "queued")
        ),
    )
    display_decision = column(_("Decision"), lambda row: link_to("decision", str(row.decision_id)))
    display_note = column(_("Note"), lambda row: shorten(row.note, 80) or "–")
    display_system_caused = column(
        _("Caused by the system"), lambda row: word("yes" if row.system_caused else "no")
    )
    display_impact_error = column(
        _("Impact error"),
        lambda row: "–" if row.impact_error is None else f"{row.impact_error:.3f}",
    )
    display_cost_error = column(
        _("Cost error"), lambda row: "–" if row.cost_error is None else f"{row.cost_error:+.2f}"
    )
    display_reported_at = column(_("Reported"), lambda row: moment(row.reported_at))
    display_expected = column(_("Expected"), lambda row: _json(row.forecast))
    display_actual = column(
        _("Actual"), lambda row: _json({"impact": row.actual_impact, "cost": row.actual_cost})
    )
    display_proposal = column(
        _("Proposed success path"), lambda row: _json(row.proposal) if row.proposal else EMPTY
    )

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

    display_change = column(
        _("Change"), lambda row: f"{row.value_before:.3f} → {row.value_after:.3f}"
    )
    display_decision = column(
        _("Decision"),
        lambda row: link_to("decision", str(row.decision_id)) if row.decision_id else EMPTY,
    )
    display_created_at = column(_("When"), lambda row: moment(row.created_at))


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
