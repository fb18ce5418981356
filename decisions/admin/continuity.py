"""What is kept of users in the admin site: objects with their versions, outcomes, evidence; and the
state that a user's own page shows. To read.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Max, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from decisions.admin.filters import TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.continuity.owner import Owner
from decisions.continuity.state import AXES, read_state
from decisions.models import Evidence, Outcome, OutcomeStatus, User, UserObject
from decisions.presentation.formatting import one_line, pretty_json, shorten
from decisions.presentation.html import code, link_to, moment, pill

VERSIONS_SHOWN = 50
NOTHING = SafeString("–")
_TONES = {"success": "succeeded", "partial": "partial_success", "failed": "failed"}


class OfUserAdmin(ReadOnlyAdmin):
    """Rows of users: found by the whole user id, or their own id."""

    search_fields = ("user_id",)
    search_help_text = "A whole user id, or an id"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find rows by a user, or one by its id."""
        term = search_term.strip()
        if not term:
            return queryset, False
        found = queryset.filter(user_id=term)
        if term.startswith("obj_"):
            found = queryset.filter(pk=term) if self.model is UserObject else queryset.none()
        return found, False

    @admin.display(description="User")
    def whose(self, row: Any) -> SafeString:
        """Return the user's id as a link to what else there is of them."""
        return _list_link(self.model._meta.model_name or "", row.user_id, row.workspace_id)


class TypeFilter(admin.SimpleListFilter):
    """Shells or success paths."""

    title = "type"
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the two."""
        return [("shell", "Shell"), ("success_path", "Success path")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one of them."""
        return queryset.filter(object_type=self.value()) if self.value() else queryset


class OutcomeFilter(admin.SimpleListFilter):
    """By what became of the decision."""

    title = "outcome"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return S2's three, and what is pending."""
        return [*((str(v), str(label)) for v, label in OutcomeStatus.choices), ("none", "Pending")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one of them."""
        if self.value() == "none":
            return queryset.filter(status__isnull=True)
        known = self.value() in OutcomeStatus.values
        return queryset.filter(status=self.value()) if known else queryset


@admin.register(UserObject)
class UserObjectAdmin(OfUserAdmin):
    """Shells and success paths, the last written first."""

    list_display = ("name", "kind", "whose", "in_version", "written")
    list_filter = (TypeFilter, WorkspaceFilter)
    ordering = ("-updated_at", "-id")
    fields = ("name", "kind", "shown_id", "whose", "written", "versions_kept")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return objects with the number of their current version."""
        rows: QuerySet[Any] = super().get_queryset(request)
        numbered: QuerySet[Any] = rows.annotate(newest=Max("versions__version"))
        return numbered

    @admin.display(description="Type")
    def kind(self, row: UserObject) -> SafeString:
        """Return which of the two it is."""
        return pill(row.object_type.replace("_", " "), "neutral")

    @admin.display(description="Id")
    def shown_id(self, row: UserObject) -> SafeString:
        """Return the id."""
        return code(row.id)

    @admin.display(description="Version")
    def in_version(self, row: Any) -> int:
        """Return which version is the current one."""
        return int(row.newest)

    @admin.display(description="Written")
    def written(self, row: UserObject) -> SafeString:
        """Return when it was last written."""
        return moment(row.updated_at)

    @admin.display(description="Versions")
    def versions_kept(self, row: UserObject) -> SafeString:
        """Return the versions, the current one open."""
        newest = row.versions.order_by("-version")[:VERSIONS_SHOWN]
        return format_html_join(
            "",
            '<details class="cty-fold" {}><summary>Version {} · {} · confidence {},'
            ' validity {} · by {}</summary><pre class="cty-pre">{}</pre></details>',
            (
                (
                    "open" if one.is_current else "",
                    one.version,
                    moment(one.created_at),
                    one.confidence,
                    one.validity,
                    one.written_by,
                    pretty_json(one.payload),
                )
                for one in newest
            ),
        )


@admin.register(Outcome)
class OutcomeAdmin(OfUserAdmin):
    """What became of decisions, the newest first."""

    list_display = ("became", "about", "whose", "said", "impact_off", "cost_off", "told_at")
    list_filter = (OutcomeFilter, WorkspaceFilter)
    ordering = ("-id",)
    fields = (
        "became",
        "about",
        "whose",
        "note",
        "by_system",
        "failure_type",
        "layer",
        "impact_off",
        "cost_off",
        "reported_by",
        "told_at",
        "expected",
        "seen",
        "suggests",
        "evidence",
    )
    readonly_fields = fields

    @admin.display(description="Outcome")
    def became(self, row: Outcome) -> SafeString:
        """Return the status, or that it is pending."""
        return pill(row.status, _TONES[row.status]) if row.status else pill("pending", "queued")

    @admin.display(description="Decision")
    def about(self, row: Outcome) -> SafeString:
        """Return the decision as a link."""
        return link_to("decision", str(row.decision_id))

    @admin.display(description="Note")
    def said(self, row: Outcome) -> str:
        """Return what was said of it."""
        return shorten(row.note, 80) or "–"

    @admin.display(description="The system was at fault")
    def by_system(self, row: Outcome) -> str:
        """Return whether the report says so."""
        return "yes" if row.system_caused else "no"

    @admin.display(description="Impact error")
    def impact_off(self, row: Outcome) -> str:
        """Return how far the forecast of the impact was off, 0..2."""
        return "–" if row.impact_error is None else f"{row.impact_error:.3f}"

    @admin.display(description="Cost error")
    def cost_off(self, row: Outcome) -> str:
        """Return actual minus expected cost."""
        return "–" if row.cost_error is None else f"{row.cost_error:+.2f}"

    @admin.display(description="Reported")
    def told_at(self, row: Outcome) -> SafeString:
        """Return when it was reported."""
        return moment(row.reported_at)

    @admin.display(description="Expected")
    def expected(self, row: Outcome) -> SafeString:
        """Return the forecast."""
        return _json(row.forecast)

    @admin.display(description="Seen")
    def seen(self, row: Outcome) -> SafeString:
        """Return the actual impact and cost."""
        return _json({"impact": row.actual_impact, "cost": row.actual_cost})

    @admin.display(description="Suggests the success path")
    def suggests(self, row: Outcome) -> SafeString:
        """Return the proposal."""
        return _json(row.proposal) if row.proposal else NOTHING

    @admin.display(description="Moved the state")
    def evidence(self, row: Outcome) -> SafeString:
        """Return how the state moved by it."""
        moves = Evidence.objects.filter(decision_id=row.decision_id).order_by("id")[:VERSIONS_SHOWN]
        told = format_html_join(
            "", "<div>{} {} → {}</div>", ((e.axis, e.value_before, e.value_after) for e in moves)
        )
        return told or NOTHING


@admin.register(Evidence)
class EvidenceAdmin(OfUserAdmin):
    """Why values are what they are, the newest first."""

    list_display = ("axis", "moved", "source", "whose", "about", "note", "told_at")
    list_filter = (WorkspaceFilter, TimeFilter)
    ordering = ("-id",)
    fields = ("axis", "moved", "delta", "confidence", "source", "whose", "about", "note", "told_at")
    readonly_fields = fields

    @admin.display(description="Moved")
    def moved(self, row: Evidence) -> str:
        """Return from which value to which."""
        return f"{row.value_before:.3f} → {row.value_after:.3f}"

    @admin.display(description="Decision")
    def about(self, row: Evidence) -> SafeString:
        """Return the decision that it came with."""
        return link_to("decision", str(row.decision_id)) if row.decision_id else NOTHING

    @admin.display(description="When")
    def told_at(self, row: Evidence) -> SafeString:
        """Return when it was told."""
        return moment(row.created_at)


def state_table(user: User) -> SafeString:
    """Return a user's state, axis by axis, the scarcest marked."""
    place = user.workspace
    state = read_state(Owner(place.tenant_id, place.id, user.user_id))
    rows = (
        (
            axis,
            state.axes[axis].value,
            f"{state.axes[axis].value:.3f}",
            f"{state.axes[axis].confidence:.2f}",
            moment(state.axes[axis].updated_at),
            pill("main constraint", "waiting") if axis == state.main_constraint else "",
        )
        for axis in AXES
    )
    lines = format_html_join(
        "",
        '<tr><td>{}</td><td><meter min="0" max="1" value="{}"></meter></td><td>{}</td>'
        '<td class="cty-dim">confidence {}</td><td>{}</td><td>{}</td></tr>',
        rows,
    )
    return format_html('<table class="cty-axes">{}</table>', lines)


def kept_of(user: User) -> SafeString:
    """Return links to what else is kept of a user."""
    parts = (("userobject", "objects"), ("outcome", "outcomes"), ("evidence", "evidence"))
    return format_html_join(
        " · ",
        "{}",
        ((_list_link(name, user.user_id, user.workspace_id, shown=told),) for name, told in parts),
    )


def _list_link(
    model_name: str, user_id: str, workspace_id: str, *, shown: str | None = None
) -> SafeString:
    asked = urlencode({"q": user_id, "workspace": workspace_id})
    page = f"{reverse(f'admin:decisions_{model_name}_changelist')}?{asked}"
    return format_html('<a class="cty-link" href="{}">{}</a>', page, shown or user_id)


def _json(value: Any) -> SafeString:
    text = pretty_json(value) if isinstance(value, dict) else one_line(value)
    return format_html('<pre class="cty-pre">{}</pre>', text)
