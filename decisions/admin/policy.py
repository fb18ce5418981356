"""Rules of policy in the admin site: what is in force, what was before, and the form for both."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from decisions.admin.filters import workspace_label
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.authorization.policy_rules import (
    RuleFields,
    change_rule,
    create_rule,
    list_versions,
    retire_rule,
)
from decisions.errors import Refused
from decisions.models import PolicyRule, RuleScope, RuleVerdict, Tenant, Token, Workspace
from decisions.presentation.formatting import shorten
from decisions.presentation.html import TONES, code, link_to, moment, pill

_LIST = "admin:decisions_policyrule_changelist"


class RuleForm(forms.Form):
    """What a rule says."""

    verdict = forms.ChoiceField(choices=RuleVerdict.choices, widget=UnfoldAdminSelectWidget)
    tool = forms.CharField(
        max_length=128,
        initial="*",
        widget=UnfoldAdminTextInputWidget,
        help_text="A tool's name, such as submit_form or run_task_template; * is every one."
        " Calls that only read runs, artifacts or state are not asked about: scopes rule those.",
    )
    target_id = forms.CharField(
        max_length=128,
        required=False,
        label="Target",
        widget=UnfoldAdminTextInputWidget,
        help_text="A target's id; of run_task_template the templateId. Empty: every one.",
    )
    scope = forms.ChoiceField(choices=(), widget=UnfoldAdminSelectWidget, label="Whose calls")
    reason = forms.CharField(
        max_length=300,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Shown to whoever is refused, and to whoever is asked.",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["scope"].choices = _places()  # type: ignore[attr-defined]

    def says(self) -> RuleFields:
        """Return what was filled in, once it is valid."""
        given = dict(self.cleaned_data)
        scope, _, scope_id = given.pop("scope").partition("|")
        return RuleFields(scope=scope, scope_id=scope_id, **given)


def _places() -> list[Any]:
    """Return whose calls a rule can be about."""
    tenants = [(f"tenant|{row.id}", row.name) for row in Tenant.objects.order_by("name")[:500]]
    spaces = Workspace.objects.select_related("tenant").order_by("tenant__name", "name")[:500]
    agents = Token.objects.filter(revoked_at__isnull=True).order_by("name")[:500]
    return [
        ("everywhere|", "everybody's"),
        ("Tenant", tenants),
        ("Workspace", [(f"workspace|{row.id}", workspace_label(row)) for row in spaces]),
        (
            "Agent",
            [
                ("agent|local", "local: agents on this machine, over stdio"),
                *((f"agent|token:{row.id}", f"token {row.name}") for row in agents),
            ],
        ),
    ]


class ForceFilter(admin.SimpleListFilter):
    """Rules in force, or what was before."""

    title = "in force"
    parameter_name = "was"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choice beside what is in force."""
        return [("before", "Earlier versions")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep what is in force, unless asked otherwise."""
        return queryset.filter(retired_at__isnull=self.value() != "before")


@admin.register(PolicyRule)
class PolicyRuleAdmin(ReadOnlyAdmin):
    """What policy says, rule by rule."""

    list_display = ("says", "shown_tool", "whose", "shown_reason", "version", "by", "made")
    list_filter = (ForceFilter,)
    ordering = ("-id",)
    search_fields = ("tool", "key")
    search_help_text = "A tool's name or a rule_… key"
    change_list_template = "admin/decisions/policyrule/list.html"
    change_form_template = "admin/decisions/policyrule/page.html"
    fields = ("says", "shown_tool", "whose", "shown_reason", "key", "version", "by", "made")
    readonly_fields = fields

    def has_make_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may make rules."""
        return request.user.has_perm("decisions.add_policyrule")

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Tell whether this operator may change and retire them."""
        return request.user.has_perm("decisions.change_policyrule")

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> PolicyRule | None:
        """Find a rule by the number of a version, or its newest version by its key."""
        if not object_id.startswith("rule_"):
            found: PolicyRule | None = super().get_object(request, object_id, from_field)
            return found
        return PolicyRule.objects.filter(key=object_id).order_by("-version").first()

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, and those of making, changing and retiring before them."""
        wrap = self.admin_site.admin_view
        return [
            path("new/", wrap(self.make_view), name="decisions_policyrule_new"),
            path("<str:key>/edit/", wrap(self.edit_view), name="decisions_policyrule_edit"),
            path("<str:key>/retire/", wrap(self.retire_view), name="decisions_policyrule_retire"),
            *super().get_urls(),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with the way to a new rule for whoever may."""
        told = {"may_make": self.has_make_permission(request), **(extra_context or {})}
        answer: HttpResponse = super().changelist_view(request, told)
        return answer

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a version of a rule, with all the others."""
        rule = self.get_object(request, object_id)
        told = {
            "may_operate": self.has_operate_permission(request),
            "versions": [_version(row) for row in list_versions(rule.key)] if rule else [],
        }
        return super().change_view(request, object_id, form_url, {**told, **(extra_context or {})})

    def make_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form, with what the link that led here says; on POST put the rule in force."""
        if not self.has_make_permission(request):
            raise PermissionDenied
        return self._form(request, RuleForm(request.POST or None, initial=request.GET.dict()), None)

    def edit_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """Show the form with what the rule says; on POST have it say something else."""
        if not self.has_operate_permission(request):
            raise PermissionDenied
        rule = get_object_or_404(PolicyRule, key=key, retired_at__isnull=True)
        now = {name: getattr(rule, name) for name in ("verdict", "tool", "target_id", "reason")}
        now["scope"] = f"{rule.scope}|{rule.scope_id}"
        return self._form(request, RuleForm(request.POST or None, initial=now), key)

    def _form(self, request: HttpRequest, form: RuleForm, key: str | None) -> HttpResponse:
        if request.method == "POST" and form.is_valid():
            actor = f"admin:{request.user.get_username()}"
            try:
                if key is None:
                    create_rule(form.says(), actor=actor)
                else:
                    change_rule(key, form.says(), actor=actor)
            except Refused as refusal:
                form.add_error(None, refusal.message)
            else:
                self.message_user(request, "It holds from the next call on.", messages.SUCCESS)
                return redirect(reverse(_LIST))
        context = {
            **self.admin_site.each_context(request),
            "model_admin": self,
            "form": form,
            "title": "Change a rule" if key else "New rule",
            "key": key,
        }
        return TemplateResponse(request, "admin/decisions/policyrule/form.html", context)

    def retire_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """Take a rule out of force."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_operate_permission(request):
            raise PermissionDenied
        try:
            retire_rule(key, actor=f"admin:{request.user.get_username()}")
        except Refused as refusal:
            self.message_user(request, refusal.message, messages.WARNING)
        else:
            self.message_user(request, f"{key} is retired.", messages.SUCCESS)
        return redirect(reverse(_LIST))

    @admin.display(description="Says")
    def says(self, rule: PolicyRule) -> SafeString:
        """Return the verdict."""
        return pill(rule.verdict, TONES[rule.verdict])

    @admin.display(description="Tool")
    def shown_tool(self, rule: PolicyRule) -> SafeString:
        """Return what it matches."""
        name = "every tool" if rule.tool == "*" else rule.tool
        return code(f"{name} → {rule.target_id}" if rule.target_id else name)

    @admin.display(description="Whose calls")
    def whose(self, rule: PolicyRule) -> SafeString | str:
        """Return whose calls it is about."""
        return _whose(rule)

    @admin.display(description="Reason")
    def shown_reason(self, rule: PolicyRule) -> str:
        """Return why."""
        return shorten(rule.reason, 80) or "–"

    @admin.display(description="By")
    def by(self, rule: PolicyRule) -> str:
        """Return who made this version."""
        return rule.created_by

    @admin.display(description="Since")
    def made(self, rule: PolicyRule) -> SafeString:
        """Return since when it says so."""
        return moment(rule.created_at)


def _whose(rule: PolicyRule) -> SafeString | str:
    if rule.scope == RuleScope.EVERYWHERE:
        return "everybody's"
    if rule.scope != RuleScope.AGENT:
        row = (
            (Tenant if rule.scope == RuleScope.TENANT else Workspace)
            .objects.filter(id=rule.scope_id)
            .first()
        )
        name = f"{rule.scope} {row.name}" if row else None
        return link_to(rule.scope, rule.scope_id, label=name)
    kind, _, token_id = rule.scope_id.partition(":")
    if kind != "token":
        return rule.scope_id
    token = Token.objects.filter(id=token_id).first()
    return link_to("token", token_id, label=f"token {token.name}" if token else None)


def _version(rule: PolicyRule) -> dict[str, Any]:
    return {
        "rule": rule,
        "says": pill(rule.verdict, TONES[rule.verdict]),
        "whose": _whose(rule),
        "ended": moment(rule.retired_at) if rule.retired_at else pill("in force", "succeeded"),
    }
