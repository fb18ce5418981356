"""Admin pages of decisions: the list, the inbox of pending confirmations, and one decision."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.db.models.expressions import BaseExpression
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from decisions.admin.acting import actor_of
from decisions.admin.columns import column
from decisions.admin.filters import ChoiceFilter, TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.authorization.confirmations import ANSWERS, MAY_DECIDE, RENEW, decide
from decisions.authorization.decision_pages import decision_page
from decisions.authorization.request_lines import request_line, request_lines
from decisions.foundation.errors import Refused
from decisions.foundation.presentation.formatting import (
    duration,
    pretty_json,
    short_id,
    shorten,
)
from decisions.foundation.presentation.html import code, link_to, moment, pill
from decisions.foundation.presentation.refusals import refusal_text
from decisions.foundation.presentation.visible_text import visible
from decisions.foundation.presentation.words import word
from decisions.models import Confirmation, ConfirmationStatus, Decision, DecisionKind

_TONES = {
    "waiting": "waiting",
    "confirmed": "succeeded",
    "refused": "failed",
    "expired": "canceled",
    "withdrawn": "canceled",
}
INBOX_TITLE = _("Inbox")
LIVE_MS = 2000
CALL_LASTS = timedelta(hours=1)  # after this, a page does not expect the end of a confirmed call
# Parts of the inbox that other apps add above the list of decisions: callables that return HTML.
inbox_parts: list[Callable[[HttpRequest], SafeString]] = []
# Parts of a decision's page that other apps add below the call: what led to it, how it ended.
decision_parts: list[Callable[[HttpRequest, Decision], SafeString]] = []
# Values that other apps add to the rows, by name: the app of runs `run_subject`, `target_name`.
row_values: list[Callable[[HttpRequest], dict[str, BaseExpression]]] = []


class ConfirmationFilter(ChoiceFilter):
    """Filter by the status of the confirmation."""

    title = _("confirmation")
    parameter_name = "status"
    options = ConfirmationStatus.choices

    def condition(self, value: str) -> Q:
        """Return the condition of the rows with a status; a waiting one has not expired."""
        if value != ConfirmationStatus.WAITING:
            return Q(confirmation__status=value)
        return Q(confirmation__status=value, confirmation__expires_at__gt=datetime.now(UTC))


class DecisionKindFilter(ChoiceFilter):
    """Filter by the decision's subject: a chat message, a direct call or a call of a step."""

    title = parameter_name = field = "kind"
    options = DecisionKind.choices


def is_inbox(request: HttpRequest) -> bool:
    """Return whether the requested list shows only what waits for a person."""
    return request.GET.get(ConfirmationFilter.parameter_name) == ConfirmationStatus.WAITING


def confirmation_state(confirmation: Confirmation | None) -> str:
    """Return the confirmation's status; `expired` as soon as its time is over.

    The scheduler updates the row some seconds later.
    """
    if confirmation is None:
        return "not needed"
    late = confirmation.expires_at <= datetime.now(UTC)
    return "expired" if confirmation.status == "waiting" and late else str(confirmation.status)


def confirmation_of(decision: Decision) -> Confirmation | None:
    """Return the decision's confirmation, None without one; `select_related` avoids a query."""
    found: Confirmation | None = getattr(decision, "confirmation", None)
    return found


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    """Decisions, newest first. Operators confirm or refuse the waiting ones."""

    list_title = _("Decisions")
    list_empty = _(
        "Each tool call that policy judges, and each message that an agent asks about, adds a row."
    )
    list_display = (
        "display_confirmation",
        "display_subject",
        "display_caller",
        "display_run",
        "display_reason",
        "display_time_left",
        "display_created_at",
    )
    list_filter = (ConfirmationFilter, DecisionKindFilter, WorkspaceFilter, TimeFilter)
    ordering = ("-id",)
    search_fields = ("id", "run_id", "user_id")
    search_help_text = _("A decision number, a run_… id or a user id")
    change_form_template = "admin/decisions/decision/page.html"
    list_before_template = "admin/decisions/decision/inbox.html"
    fields = ("display_created_at",)
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Decision]:
        """Return decisions with their confirmations and the values that other apps add."""
        rows: QuerySet[Decision] = super().get_queryset(request)
        for values in row_values:
            rows = rows.annotate(**values(request))
        return rows.select_related("confirmation")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Decision], search_term: str
    ) -> tuple[QuerySet[Decision], bool]:
        """Find decisions by number, run id or user id."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.isascii() and term.isdigit() and len(term) < 19:
            return queryset.filter(pk=int(term)), False
        field = "run_id" if term.startswith("run_") else "user_id"
        return queryset.filter(**{field: term}), False

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may confirm and refuse."""
        return request.user.has_perm(MAY_DECIDE)

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, with those of the answers to a decision."""
        live = self.admin_site.admin_view(never_cache(self.live_view))
        return [
            path("<int:decision_id>/live/", live, name="decisions_decision_live"),
            *(
                path(
                    f"<int:decision_id>/{answer}/",
                    self.admin_site.admin_view(self._view_of(answer)),
                    name=f"decisions_decision_{answer}",
                )
                for answer in ANSWERS
            ),
            *super().get_urls(),
        ]

    def _view_of(self, answer: str) -> Callable[..., HttpResponse]:
        def view(request: HttpRequest, decision_id: int) -> HttpResponse:
            if request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            if not self.has_decide_permission(request):
                raise PermissionDenied
            self._decide(request, answer, decision_id)
            return redirect(reverse("admin:decisions_decision_change", args=[decision_id]))

        return view

    def _decide(self, request: HttpRequest, answer: str, decision_id: int) -> None:
        by, shown = actor_of(request), request.POST.get("shown")
        try:
            confirmation = decide(
                answer=answer, decision_id=decision_id, by=by, how="admin", shown=shown
            )
        except Refused as refusal:
            self.message_user(request, refusal_text(refusal.message), messages.WARNING)
        else:
            message = _("Decision %(id)s is %(status)s.") % {
                "id": decision_id,
                "status": word(confirmation.status),
            }
            if answer == RENEW:
                message = f"{message} " + gettext("Its run requests a new one.")
            self.message_user(request, message, messages.SUCCESS)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the parts that other apps add to the inbox."""
        parts = inbox_parts if is_inbox(request) else []
        return {"inbox_parts": [part(request) for part in parts]}

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Return the list; each row has the line of its request beside those of the others."""
        listed: ChangeList = super().get_changelist_instance(request)
        lines = request_lines(listed.result_list)
        for decision in listed.result_list:
            decision.line = lines[decision.pk]
        return listed

    def get_list_title(self, request: HttpRequest) -> str:
        """Return "Inbox" for the list of waiting decisions."""
        return str(INBOX_TITLE if is_inbox(request) else self.list_title)

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return a decision: whole to users who may decide, with the buttons while it waits."""
        decision = self.get_queryset(request).filter(pk=_number(object_id)).first()
        context = {} if decision is None else self._shown(request, decision)
        context["may_decide"] = may_decide = self.has_decide_permission(request)
        if decision is not None and may_decide and confirmation_of(decision) is not None:
            page = decision_page(decision, request.GET.get("page", 1))
            context["page"] = page if context["is_waiting"] or not page.problem else None
        return context

    def live_view(self, request: HttpRequest, decision_id: int) -> HttpResponse:
        """Return the parts of a decision's page that change; the page's script updates them.

        The call and the buttons that decide it are not among them while it waits: what a person
        reads does not change under his eyes.
        """
        decision = self.row_or_404(request, self.get_queryset(request), str(decision_id))
        context = self._shown(request, decision)
        context["may_decide"] = self.has_decide_permission(request)
        return TemplateResponse(request, "admin/decisions/decision/live.html", context)

    def _shown(self, request: HttpRequest, decision: Decision) -> dict[str, Any]:
        parts = [part(request, decision) for part in decision_parts]
        return {**_page_context(decision), "decision_parts": parts}

    display_confirmation = column(_("Confirmation"), lambda decision: state_pill(decision))

    @admin.display(description=_("Call or message"))
    def display_subject(self, decision: Decision) -> SafeString:
        """Return the tool call with its arguments, or the chat message."""
        line = getattr(decision, "line", None) or request_line(decision)
        html = '<span class="cty-run"><b>{}</b><span class="cty-request cty-dim">{}</span></span>'
        return format_html(html, title_of(decision), line)

    @admin.display(description=_("Caller"))
    def display_caller(self, decision: Decision) -> SafeString:
        """Return the principal, and the user it acts for."""
        caller = _link_to_principal(decision.principal_id)
        return (
            format_html(str(_("{} for {}")), caller, visible(decision.user_id))
            if decision.user_id
            else caller
        )

    @admin.display(description=_("Run"))
    def display_run(self, decision: Decision) -> SafeString | str:
        """Return the run of the call, as a link, with its subject for users who may view it."""
        if not decision.run_id:
            return "–"
        link, subject = link_to("run", decision.run_id), getattr(decision, "run_subject", "")
        if not subject:
            return link
        html = '<span class="cty-run"><span class="cty-clip">{}</span>{}</span>'
        return format_html(html, visible(subject), link)

    @admin.display(description=_("Reason"))
    def display_reason(self, decision: Decision) -> SafeString:
        """Return the reason, or the rule without one."""
        text = visible(shorten(refusal_text(decision.reason) or decision.rule, 80))
        return format_html('<span class="cty-clip" title="{}">{}</span>', decision.rule, text)

    @admin.display(description=_("Expires"))
    def display_time_left(self, decision: Decision) -> SafeString | str:
        """Return the time left to decide."""
        confirmation = confirmation_of(decision)
        if confirmation is None or confirmation_state(confirmation) != "waiting":
            return "–"
        return time_left(confirmation)

    display_created_at = column(_("Requested"), lambda decision: moment(decision.created_at))


def state_pill(decision: Decision) -> SafeString:
    """Return the status of a decision's confirmation as a coloured label."""
    state = confirmation_state(confirmation_of(decision))
    return pill(state, _TONES.get(state, "neutral"))


def title_of(decision: Decision) -> str:
    """Return a short title: the tool and its target, or the mode of a chat message."""
    if not decision.tool:
        return f"{word('chat')}: {word(decision.mode.replace('_', ' '))}"
    place = target_label(decision)
    return visible(f"{decision.tool} → {place}" if place else decision.tool)


def target_label(decision: Decision) -> str:
    """Return the name of a decision's target, else its id; empty without a target."""
    return str(getattr(decision, "target_name", None) or decision.target_id or "")


def tab_title(decision: Decision, state: str) -> str:
    """Return the title of a decision's tab: what is asked, or how it was decided."""
    what, about = visible(decision.tool), getattr(decision, "run_subject", "")
    if not decision.tool:
        what = _("the message “%(text)s”") % {"text": visible(message_of(decision, 60))}
    elif about:
        what = _("%(call)s for “%(about)s”") % {"call": what, "about": visible(about)}
    if state == "waiting":
        return _("Confirm %(what)s?") % {"what": what}
    return f"{capfirst(word(state))}: {what}"


def message_of(decision: Decision, length: int) -> str:
    """Return the chat message of a decision, shortened to `length` characters."""
    return shorten(str(decision.arguments.get("message", decision.task_type)), length)


def time_left(confirmation: Confirmation) -> str:
    """Return the time left until the confirmation expires, such as `in 5 min`."""
    left = (confirmation.expires_at - datetime.now(UTC)).total_seconds()
    return _("in %(time)s") % {"time": duration(max(0.0, left) * 1000)}


def _page_context(decision: Decision) -> dict[str, Any]:
    """Return the template context of a decision's page."""
    confirmation = confirmation_of(decision)
    state = confirmation_state(confirmation)
    return {
        "decision": decision,
        "title": _("Decision %(id)s") % {"id": decision.pk},
        "subject": title_of(decision),
        "line": request_line(decision),
        "tab_title": tab_title(decision, state),
        "target": target_label(decision),
        "state": state_pill(decision),
        "is_waiting": state == "waiting",
        "live_ms": LIVE_MS if state == "waiting" or _is_recent(confirmation) else 0,
        "confirmation": confirmation,
        "arguments": pretty_json(decision.arguments) if decision.arguments else "",
        "caller": _link_to_principal(decision.principal_id),
        "rule": _rule(decision.rule),
        "expires": time_left(confirmation) if confirmation and state == "waiting" else "",
        "parts": pretty_json(decision.parts) if decision.parts else "",
        "trace": pretty_json(decision.trace) if decision.trace else "",
    }


def _is_recent(confirmation: Confirmation | None) -> bool:
    """Return whether it was decided so lately that its call may not have ended."""
    decided_at = confirmation.decided_at if confirmation else None
    return decided_at is not None and decided_at > datetime.now(UTC) - CALL_LASTS


def _rule(rule: str) -> SafeString | str:
    """Return the rule of the decision, as a link for a policy rule."""
    key, _, version = rule.partition(" ")
    if not key.startswith("rule_"):
        return rule or "–"
    return link_to("policyrule", key, label=f"{short_id(key)} {version}")


def _link_to_principal(principal_id: str) -> SafeString:
    kind, separator, name = principal_id.partition(":")
    if separator and kind == "token":
        return format_html("{} {}", word("token"), link_to("token", name))
    return code(principal_id)


def _number(object_id: str) -> int:
    return (
        int(object_id) if object_id.isascii() and object_id.isdigit() and len(object_id) < 19 else 0
    )
