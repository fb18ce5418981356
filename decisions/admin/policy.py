"""Admin pages of policy rules: the list, one rule with its versions, and the form."""

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

from decisions.admin.acting import actor_of
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
    """The form of a new or changed policy rule."""

    verdict = forms.ChoiceField(choices=RuleVerdict.choices, widget=UnfoldAdminSelectWidget)
    tool = forms.CharField(
        max_length=128,
        initial="*",
        widget=UnfoldAdminTextInputWidget,
        help_text="A tool's name, such as submit_form or run_task_template; * matches every tool."
        " Calls that only read runs, artifacts or state are controlled by scopes, not by policy.",
    )
    target_id = forms.CharField(
        max_length=128,
        required=False,
        label="Target",
        widget=UnfoldAdminTextInputWidget,
        help_text="A target's id; for run_task_template, the templateId. Empty: every target.",
    )
    scope = forms.ChoiceField(choices=(), widget=UnfoldAdminSelectWidget, label="Calls of")
    reason = forms.CharField(
        max_length=300,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Shown to the caller when the call is denied, and to the person who confirms.",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["scope"].choices = _scope_choices()  # type: ignore[attr-defined]

    def rule_fields(self) -> RuleFields:
        """Return the fields of the rule; the form must be valid."""
        data = dict(self.cleaned_data)
        scope, _, scope_id = data.pop("scope").partition("|")
        return RuleFields(scope=scope, scope_id=scope_id, **data)


def _scope_choices() -> list[Any]:
    """Return the scopes of a rule: all callers, a tenant, a workspace or an agent."""
    tenants = [(f"tenant|{row.id}", row.name) for row in Tenant.objects.order_by("name")[:500]]
    workspaces = Workspace.objects.select_related("tenant").order_by("tenant__name", "name")[:500]
    tokens = Token.objects.filter(revoked_at__isnull=True).order_by("name")[:500]
    return [
        ("everywhere|", "all callers"),
        ("Tenant", tenants),
        ("Workspace", [(f"workspace|{row.id}", workspace_label(row)) for row in workspaces]),
        (
            "Agent",
            [
                ("agent|local", "local: agents on this machine, over stdio"),
                *((f"agent|token:{row.id}", f"token {row.name}") for row in tokens),
            ],
        ),
    ]


class RuleStateFilter(admin.SimpleListFilter):
    """Filter for rules in force (the default) or replaced and retired versions."""

    title = "in force"
    parameter_name = "was"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choice besides the default."""
        return [("before", "Earlier versions")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rules in force, or the earlier versions."""
        return queryset.filter(retired_at__isnull=self.value() != "before")


@admin.register(PolicyRule)
class PolicyRuleAdmin(ReadOnlyAdmin):
    """Policy rules; a change creates a new version."""

    list_display = (
        "display_verdict",
        "display_tool",
        "display_scope",
        "display_reason",
        "version",
        "display_author",
        "display_created_at",
    )
    list_filter = (RuleStateFilter,)
    ordering = ("-id",)
    search_fields = ("tool", "key")
    search_help_text = "A tool's name or a rule_… id"
    change_list_template = "admin/decisions/policyrule/list.html"
    change_form_template = "admin/decisions/policyrule/page.html"
    fields = (
        "display_verdict",
        "display_tool",
        "display_scope",
        "display_reason",
        "key",
        "version",
        "display_author",
        "display_created_at",
    )
    readonly_fields = fields

    def has_create_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may create rules."""
        return request.user.has_perm("decisions.add_policyrule")

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may change and retire rules."""
        return request.user.has_perm("decisions.change_policyrule")

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> PolicyRule | None:
        """Find a rule by the primary key of a version, or its newest version by its rule_… id."""
        if not object_id.startswith("rule_"):
            found: PolicyRule | None = super().get_object(request, object_id, from_field)
            return found
        return PolicyRule.objects.filter(key=object_id).order_by("-version").first()

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, with those that create, change and retire rules."""
        wrap = self.admin_site.admin_view
        return [
            path("new/", wrap(self.create_view), name="decisions_policyrule_new"),
            path("<str:key>/edit/", wrap(self.edit_view), name="decisions_policyrule_edit"),
            path("<str:key>/retire/", wrap(self.retire_view), name="decisions_policyrule_retire"),
            *super().get_urls(),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with a link to the form for users who may create rules."""
        context = {"may_create": self.has_create_permission(request), **(extra_context or {})}
        return super().changelist_view(request, context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a version of a rule and the list of all versions."""
        rule = self.get_object(request, object_id)
        context = {
            "may_operate": self.has_operate_permission(request),
            "versions": [_version_context(row) for row in list_versions(rule.key)] if rule else [],
        }
        return super().change_view(
            request, object_id, form_url, {**context, **(extra_context or {})}
        )

    def create_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form, prefilled from the query string; on POST create the rule."""
        if not self.has_create_permission(request):
            raise PermissionDenied
        return self._form(request, RuleForm(request.POST or None, initial=request.GET.dict()), None)

    def edit_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """Show the form with the rule's fields; on POST create a new version."""
        if not self.has_operate_permission(request):
            raise PermissionDenied
        rule = get_object_or_404(PolicyRule, key=key, retired_at__isnull=True)
        initial = {name: getattr(rule, name) for name in ("verdict", "tool", "target_id", "reason")}
        initial["scope"] = f"{rule.scope}|{rule.scope_id}"
        return self._form(request, RuleForm(request.POST or None, initial=initial), key)

    def _form(self, request: HttpRequest, form: RuleForm, key: str | None) -> HttpResponse:
        if request.method == "POST" and form.is_valid():
            actor = actor_of(request)
            try:
                if key is None:
                    create_rule(form.rule_fields(), actor=actor)
                else:
                    change_rule(key, form.rule_fields(), actor=actor)
            except Refused as refusal:
                form.add_error(None, refusal.message)
            else:
                message = "The rule applies from the next call on."
                self.message_user(request, message, messages.SUCCESS)
                return redirect(reverse(_LIST))
        context = {
            **self.admin_site.each_context(request),
            "model_admin": self,
            "form": form,
            "title": "Change rule" if key else "New rule",
            "key": key,
        }
        return TemplateResponse(request, "admin/decisions/policyrule/form.html", context)

    def retire_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """Retire a rule: it no longer applies."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_operate_permission(request):
            raise PermissionDenied
        try:
            retire_rule(key, actor=actor_of(request))
        except Refused as refusal:
            self.message_user(request, refusal.message, messages.WARNING)
        else:
            self.message_user(request, f"{key} is retired.", messages.SUCCESS)
        return redirect(reverse(_LIST))

    @admin.display(description="Verdict")
    def display_verdict(self, rule: PolicyRule) -> SafeString:
        """Return the verdict as a coloured label."""
        return pill(rule.verdict, TONES[rule.verdict])

    @admin.display(description="Tool")
    def display_tool(self, rule: PolicyRule) -> SafeString:
        """Return the tool and the target that the rule matches."""
        name = "every tool" if rule.tool == "*" else rule.tool
        return code(f"{name} → {rule.target_id}" if rule.target_id else name)

    @admin.display(description="Calls of")
    def display_scope(self, rule: PolicyRule) -> SafeString | str:
        """Return whose calls the rule matches."""
        return _scope_label(rule)

    @admin.display(description="Reason")
    def display_reason(self, rule: PolicyRule) -> str:
        """Return the shortened reason."""
        return shorten(rule.reason, 80) or "–"

    @admin.display(description="By")
    def display_author(self, rule: PolicyRule) -> str:
        """Return who created this version."""
        return rule.created_by

    @admin.display(description="Since")
    def display_created_at(self, rule: PolicyRule) -> SafeString:
        """Return since when this version applies."""
        return moment(rule.created_at)


def _scope_label(rule: PolicyRule) -> SafeString | str:
    if rule.scope == RuleScope.EVERYWHERE:
        return "all callers"
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


def _version_context(rule: PolicyRule) -> dict[str, Any]:
    return {
        "rule": rule,
        "verdict": pill(rule.verdict, TONES[rule.verdict]),
        "scope": _scope_label(rule),
        "ended": moment(rule.retired_at) if rule.retired_at else pill("in force", "succeeded"),
    }
