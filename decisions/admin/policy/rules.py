"""The model admin of policy rules: the list, one rule with its versions, and the steps that make,
change and retire one.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from decisions.admin.acting import actor_of
from decisions.admin.columns import column
from decisions.admin.policy.forms import CallForm, RuleForm, initial_of, named_in, scope_label
from decisions.admin.policy.review import review_of, review_of_retirement, tested_call
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.authorization.policy import ANY_TOOL
from decisions.authorization.policy_rules import (
    change_rule,
    create_rule,
    list_versions,
    retire_rule,
)
from decisions.foundation.errors import Refused
from decisions.foundation.presentation.formatting import shorten
from decisions.foundation.presentation.html import TONES, code, moment, pill
from decisions.foundation.presentation.refusals import refusal_text
from decisions.foundation.presentation.visible_text import visible
from decisions.models import PolicyRule

_LIST = "admin:decisions_policyrule_changelist"
_REVIEW = "admin/decisions/policyrule/review.html"


class RuleStateFilter(admin.SimpleListFilter):
    """Filter for rules in force (the default) or replaced and retired versions."""

    title = _("in force")
    parameter_name = "was"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choice besides the default."""
        return [("before", str(_("Earlier versions")))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rules in force, or the earlier versions."""
        return queryset.filter(retired_at__isnull=self.value() != "before")


@admin.register(PolicyRule)
class PolicyRuleAdmin(ReadOnlyAdmin):
    """Policy rules; a change creates a new version."""

    list_title = _("Policy rules")
    list_empty = _(
        "A rule allows, denies or requires a confirmation for tool calls. Without "
        "rules, the defaults apply."
    )
    list_display = (
        "display_verdict",
        "display_tool",
        "display_scope",
        "display_short_reason",
        "display_version",
        "display_author",
        "display_created_at",
    )
    list_filter = (RuleStateFilter,)
    ordering = ("-id",)
    search_fields = ("tool", "key")
    search_help_text = _("A tool's name or a rule_… id")
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
        """Return the admin's URLs, with those that create, change, retire and test rules."""
        wrap = self.admin_site.admin_view
        return [
            path("test/", wrap(self.test_view), name="decisions_policyrule_test"),
            path("new/", wrap(self.create_view), name="decisions_policyrule_new"),
            path("<str:key>/edit/", wrap(self.edit_view), name="decisions_policyrule_edit"),
            path("<str:key>/retire/", wrap(self.retire_view), name="decisions_policyrule_retire"),
            *super().get_urls(),
        ]

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return all versions of a rule."""
        rule = self.get_object(request, object_id)
        return {
            "may_operate": self.has_operate_permission(request),
            "versions": [_version_context(row) for row in list_versions(rule.key)] if rule else [],
        }

    def create_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form, then what the rule would do, then create the rule.

        A link may name the tool, the target and the caller, never the verdict.
        """
        if not self.has_create_permission(request):
            raise PermissionDenied
        form = RuleForm(request.POST or None, initial=named_in(request.GET.dict()))
        return self._form(request, form, None)

    def edit_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """Show the form with the rule's fields, then what the change would do, then create a new
        version.
        """
        if not self.has_operate_permission(request):
            raise PermissionDenied
        rule = get_object_or_404(PolicyRule, key=key, retired_at__isnull=True)
        return self._form(request, RuleForm(request.POST or None, initial=initial_of(rule)), key)

    def _form(self, request: HttpRequest, form: RuleForm, key: str | None) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "model_admin": self,
            "form": form,
            "title": _("Change rule") if key else _("New rule"),
            "key": key,
        }
        if request.method == "POST" and form.is_valid() and request.POST.get("step") != "edit":
            try:
                review = review_of(form.rule_fields(), key)
                if review.is_agreed(request.POST):
                    return self._save(request, form, key)
            except Refused as refusal:
                form.add_error(None, refusal_text(refusal.message))
            else:
                return TemplateResponse(request, _REVIEW, context | review.context(request.POST))
        return TemplateResponse(request, "admin/decisions/policyrule/form.html", context)

    def _save(self, request: HttpRequest, form: RuleForm, key: str | None) -> HttpResponse:
        actor = actor_of(request)
        if key is None:
            create_rule(form.rule_fields(), actor=actor)
        else:
            change_rule(key, form.rule_fields(), actor=actor)
        self.message_user(request, _("The rule applies from the next call on."), messages.SUCCESS)
        return redirect(reverse(_LIST))

    def test_view(self, request: HttpRequest) -> HttpResponse:
        """Show how policy decides on a call: tool, target and caller."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = CallForm(request.GET or None)
        context = {
            **self.admin_site.each_context(request),
            "model_admin": self,
            "form": form,
            "title": _("Test a call"),
        }
        if form.is_valid():
            try:
                context |= tested_call(form.cleaned_data)
            except Refused as refusal:
                form.add_error(None, refusal_text(refusal.message))
        return TemplateResponse(request, "admin/decisions/policyrule/test.html", context)

    def retire_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """Show what retiring a rule does, then retire it: it no longer applies."""
        if not self.has_operate_permission(request):
            raise PermissionDenied
        try:
            review = review_of_retirement(key)
            if request.method != "POST" or not review.is_agreed(request.POST):
                context = {
                    **self.admin_site.each_context(request),
                    "model_admin": self,
                    "title": _("Retire rule"),
                    "retires": True,
                }
                return TemplateResponse(request, _REVIEW, context | review.context(request.POST))
            retire_rule(key, actor=actor_of(request))
        except Refused as refusal:
            self.message_user(request, refusal_text(refusal.message), messages.WARNING)
        else:
            self.message_user(request, _("%(key)s is retired.") % {"key": key}, messages.SUCCESS)
        return redirect(reverse(_LIST))

    display_verdict = column(_("Verdict"), lambda rule: pill(rule.verdict, TONES[rule.verdict]))

    @admin.display(description=_("Tool"))
    def display_tool(self, rule: PolicyRule) -> SafeString:
        """Return the tool and the target that the rule matches."""
        name = gettext("every tool") if rule.tool == ANY_TOOL else rule.tool
        return code(f"{name} → {rule.target_id}" if rule.target_id else name)

    display_scope = column(_("Calls of"), scope_label)

    @admin.display(description=_("Reason"))
    def display_short_reason(self, rule: PolicyRule) -> SafeString:
        """Return the beginning of the reason; in the list it wraps."""
        shown = visible(shorten(rule.reason, 80)) or "–"
        return format_html('<span class="cty-request">{}</span>', shown)

    display_reason = column(_("Reason"), lambda rule: visible(rule.reason) or "–")
    display_version = column(_("Version"), lambda rule: rule.version)
    display_author = column(_("By"), lambda rule: visible(rule.created_by))
    display_created_at = column(_("Since"), lambda rule: moment(rule.created_at))


def _version_context(rule: PolicyRule) -> dict[str, Any]:
    return {
        "rule": rule,
        "verdict": pill(rule.verdict, TONES[rule.verdict]),
        "scope": scope_label(rule),
        "ended": moment(rule.retired_at) if rule.retired_at else pill("in force", "succeeded"),
    }
