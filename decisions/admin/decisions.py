"""Decisions in the admin site, and the inbox of those that wait for a person: what, why, by which
rule, until when, and the two buttons.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from decisions.admin.filters import TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.authorization.confirmations import confirm, refuse
from decisions.errors import Refused
from decisions.models import Confirmation, ConfirmationStatus, Decision, DecisionKind
from decisions.presentation.formatting import (
    duration,
    exact_json,
    one_line,
    pretty_json,
    short_id,
    shorten,
)
from decisions.presentation.html import code, link_to, moment, pill

_TONES = {
    "waiting": "waiting",
    "confirmed": "succeeded",
    "refused": "failed",
    "expired": "canceled",
    "withdrawn": "canceled",
}
MAY_DECIDE = "decisions.change_confirmation"
# What the parts above show of their own that waits for a person, above the decisions that do.
inbox_parts: list[Callable[[HttpRequest], SafeString]] = []


class StateFilter(admin.SimpleListFilter):
    """By what was said to them."""

    title = "answer"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the answers, the missing one first."""
        return [(str(value), str(label)) for value, label in ConfirmationStatus.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one of them."""
        if self.value() not in ConfirmationStatus.values:
            return queryset
        kept = queryset.filter(confirmation__status=self.value())
        if self.value() != ConfirmationStatus.WAITING:
            return kept
        return kept.filter(confirmation__expires_at__gt=datetime.now(UTC))


class KindFilter(admin.SimpleListFilter):
    """Words or deeds."""

    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the kinds."""
        return [(str(value), str(label)) for value, label in DecisionKind.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one of them."""
        return queryset.filter(kind=self.value()) if self.value() else queryset


def state_folder(confirmation: Confirmation | None) -> str:
    """Return how a confirmation stands by the clock, which the scheduler follows within seconds."""
    if confirmation is None:
        return "none needed"
    late = confirmation.expires_at <= datetime.now(UTC)
    return "expired" if confirmation.status == "waiting" and late else str(confirmation.status)


def confirmation_of(decision: Decision) -> Confirmation | None:
    """Return what the decision waits or waited for, read with it."""
    found: Confirmation | None = getattr(decision, "confirmation", None)
    return found


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    """What was decided, newest first; what waits can be confirmed or refused."""

    list_display = ("state", "what", "asked_by", "by_run", "why", "until", "made")
    list_filter = (StateFilter, KindFilter, WorkspaceFilter, TimeFilter)
    ordering = ("-id",)
    search_fields = ("id", "run_id", "user_id")
    search_help_text = "A number, a run_… id or a user"
    change_form_template = "admin/decisions/decision/page.html"
    list_before_template = "admin/decisions/decision/inbox.html"
    fields = ("made",)
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Decision]:
        """Return decisions with what was said to them."""
        rows: QuerySet[Decision] = super().get_queryset(request)
        return rows.select_related("confirmation")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Decision], search_term: str
    ) -> tuple[QuerySet[Decision], bool]:
        """Find decisions by a number, a run or a user."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.isascii() and term.isdigit() and len(term) < 19:
            return queryset.filter(pk=int(term)), False
        field = "run_id" if term.startswith("run_") else "user_id"
        return queryset.filter(**{field: term}), False

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may confirm and refuse."""
        return request.user.has_perm(MAY_DECIDE)

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, and the addresses of the two deeds before them."""
        deeds = {"confirm": confirm, "refuse": refuse}
        return [
            *(
                path(
                    f"<int:decision_id>/{name}/",
                    self.admin_site.admin_view(self._view_of(deed)),
                    name=f"decisions_decision_{name}",
                )
                for name, deed in deeds.items()
            ),
            *super().get_urls(),
        ]

    def _view_of(self, deed: Callable[..., Confirmation]) -> Callable[..., HttpResponse]:
        def view(request: HttpRequest, decision_id: int) -> HttpResponse:
            if request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            if not self.has_decide_permission(request):
                raise PermissionDenied
            self._decide(request, deed, decision_id)
            return redirect(reverse("admin:decisions_decision_change", args=[decision_id]))

        return view

    def _decide(
        self, request: HttpRequest, deed: Callable[..., Confirmation], decision_id: int
    ) -> None:
        by = f"admin:{request.user.get_username()}"
        try:
            done = deed(decision_id=decision_id, by=by, how="admin")
        except Refused as refusal:
            self.message_user(request, refusal.message, messages.WARNING)
        else:
            told = f"Decision {decision_id} is {done.status}."
            self.message_user(request, told, messages.SUCCESS)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list; as the inbox, with whatever else waits for a person."""
        is_inbox = request.GET.get(StateFilter.parameter_name) == ConfirmationStatus.WAITING
        parts = [part(request) for part in inbox_parts] if is_inbox else []
        shown = {"inbox_parts": parts, **(extra_context or {})}
        answer: HttpResponse = super().changelist_view(request, shown)
        return answer

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a decision, with the two buttons while it waits and for whoever may."""
        found = Decision.objects.select_related("confirmation").filter(pk=_number(object_id))
        context = _shown(decision) if (decision := found.first()) is not None else {}
        context["may_decide"] = self.has_decide_permission(request)
        return super().change_view(
            request, object_id, form_url, {**context, **(extra_context or {})}
        )

    @admin.display(description="Answer")
    def state(self, decision: Decision) -> SafeString:
        """Return what was said to it."""
        return state_pill(decision)

    @admin.display(description="What")
    def what(self, decision: Decision) -> SafeString:
        """Return the tool that is to be called and its arguments, or the words it was about."""
        return format_html(
            '<span class="cty-run"><b>{}</b><span class="cty-clip cty-dim">{}</span></span>',
            title_of(decision),
            one_line(decision.arguments, 80) if decision.tool else words_of(decision, 80),
        )

    @admin.display(description="Asked by")
    def asked_by(self, decision: Decision) -> SafeString:
        """Return who wants it, and for whom."""
        who = _link_to_principal(decision.principal_id)
        return format_html("{} for {}", who, decision.user_id) if decision.user_id else who

    @admin.display(description="Run")
    def by_run(self, decision: Decision) -> SafeString | str:
        """Return the run that waits for it."""
        return link_to("run", decision.run_id) if decision.run_id else "–"

    @admin.display(description="Why")
    def why(self, decision: Decision) -> SafeString:
        """Return the reason, or the rule."""
        told = shorten(decision.reason or decision.rule, 80)
        return format_html('<span class="cty-clip" title="{}">{}</span>', decision.rule, told)

    @admin.display(description="Expires")
    def until(self, decision: Decision) -> SafeString | str:
        """Return how long it still waits."""
        confirmation = confirmation_of(decision)
        if confirmation is None or state_folder(confirmation) != "waiting":
            return "–"
        return time_left(confirmation)

    @admin.display(description="Asked")
    def made(self, decision: Decision) -> SafeString:
        """Return when it was made."""
        return moment(decision.created_at)


def state_pill(decision: Decision) -> SafeString:
    """Return how a decision stands, as a coloured label."""
    state = state_folder(confirmation_of(decision))
    return pill(state, _TONES.get(state, "neutral"))


def title_of(decision: Decision) -> str:
    """Return a decision in two words: the tool and its target, or what the words were about."""
    if not decision.tool:
        return f"chat: {decision.mode}"
    return f"{decision.tool} → {decision.target_id}" if decision.target_id else decision.tool


def words_of(decision: Decision, length: int) -> str:
    """Return what was said where the decision was about words, cut to a length."""
    return shorten(str(decision.arguments.get("message", decision.task_type)), length)


def time_left(confirmation: Confirmation) -> str:
    """Return how long a person may still decide."""
    left = (confirmation.expires_at - datetime.now(UTC)).total_seconds()
    return f"in {duration(max(0.0, left) * 1000)}"


def _shown(decision: Decision) -> dict[str, Any]:
    """Return what the page of a decision shows."""
    confirmation = confirmation_of(decision)
    state = state_folder(confirmation)
    return {
        "decision": decision,
        "title": f"Decision {decision.pk}",
        "what": title_of(decision),
        "state": state_pill(decision),
        "waits": state == "waiting",
        "confirmation": confirmation,
        "arguments": exact_json(decision.arguments) if decision.arguments else "",
        "who": _link_to_principal(decision.principal_id),
        "rule": _rule(decision.rule),
        "expires": time_left(confirmation) if confirmation and state == "waiting" else "",
        "parts": pretty_json(decision.parts) if decision.parts else "",
        "trace": pretty_json(decision.trace) if decision.trace else "",
    }


def _rule(told: str) -> SafeString | str:
    """Return the rule that decided, as a link where it is one of policy's."""
    key, _, version = told.partition(" ")
    if not key.startswith("rule_"):
        return told or "–"
    return link_to("policyrule", key, label=f"{short_id(key)} {version}")


def _link_to_principal(principal_id: str) -> SafeString:
    kind, mark, name = principal_id.partition(":")
    if mark and kind == "token":
        return format_html("token {}", link_to("token", name))
    return code(principal_id)


def _number(object_id: str) -> int:
    return (
        int(object_id) if object_id.isascii() and object_id.isdigit() and len(object_id) < 19 else 0
    )
