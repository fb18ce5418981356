"""Forms of policy rules: a new or changed rule, and a call to test."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from decisions.admin.filters import workspace_label
from decisions.authorization.policy import ANY_TOOL
from decisions.authorization.policy_rules import RuleFields
from decisions.foundation.presentation.html import link_to
from decisions.foundation.presentation.visible_text import visible
from decisions.foundation.presentation.words import lazy_word, word
from decisions.models import PolicyRule, RuleScope, RuleVerdict, Tenant, Token, Workspace

_CHOOSE = ("", _("Choose…"))
_ALL_CALLERS = _("all callers")
EVERY_TARGET = "*"  # as people write it; a rule stores an empty target


class RuleForm(forms.Form):
    """The form of a new or changed policy rule. Each field has to be filled in: nothing is chosen
    in advance.
    """

    verdict = forms.ChoiceField(
        choices=[_CHOOSE, *((value, lazy_word(label)) for value, label in RuleVerdict.choices)],
        widget=UnfoldAdminSelectWidget,
    )
    tool = forms.CharField(
        max_length=128,
        widget=UnfoldAdminTextInputWidget,
        help_text=_(
            "A tool's name, such as submit_form or run_task_template; * matches every tool."
            " Calls that only read runs, artifacts or state are controlled by scopes, not by"
            " policy."
        ),
    )
    target_id = forms.CharField(
        max_length=128,
        label=_("Target"),
        widget=UnfoldAdminTextInputWidget,
        help_text=_(
            "A target's id; for run_task_template, the templateId; * matches every target,"
            " and calls without one."
        ),
    )
    scope = forms.ChoiceField(choices=(), widget=UnfoldAdminSelectWidget, label=_("Calls of"))
    reason = forms.CharField(
        max_length=300,
        widget=UnfoldAdminTextInputWidget,
        help_text=_("Shown to the caller when the call is denied, and to the person who confirms."),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["scope"].choices = [  # type: ignore[attr-defined]
            _CHOOSE,
            *scope_choices(),
        ]

    def rule_fields(self) -> RuleFields:
        """Return the fields of the rule; the form must be valid."""
        data = dict(self.cleaned_data)
        scope, _, scope_id = data.pop("scope").partition("|")
        if data["target_id"] == EVERY_TARGET:
            data["target_id"] = ""
        return RuleFields(scope=scope, scope_id=scope_id, **data)


class CallForm(forms.Form):
    """The form of a call whose policy decision is tested."""

    tool = forms.CharField(
        max_length=128, widget=UnfoldAdminTextInputWidget, help_text=_("The name of the tool.")
    )
    target_id = forms.CharField(
        max_length=128,
        required=False,
        label=_("Target"),
        widget=UnfoldAdminTextInputWidget,
        help_text=_("The target's id; for run_task_template, the templateId. Empty: none."),
    )
    caller = forms.ChoiceField(choices=(), widget=UnfoldAdminSelectWidget)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["caller"].choices = [  # type: ignore[attr-defined]
            _CHOOSE,
            *reversed(scope_choices(_("any other caller"))),
        ]


def initial_of(rule: PolicyRule) -> dict[str, str]:
    """Return what the form of an existing rule shows."""
    return {
        "verdict": rule.verdict,
        "tool": rule.tool,
        "target_id": rule.target_id or EVERY_TARGET,
        "scope": f"{rule.scope}|{rule.scope_id}",
        "reason": rule.reason,
    }


def named_in(query: dict[str, Any]) -> dict[str, str]:
    """Return what a link may fill in: one tool, one target and the caller; never the verdict."""
    named = {name: str(query.get(name, "")) for name in ("tool", "target_id", "scope")}
    is_wide = (ANY_TOOL, EVERY_TARGET, f"{RuleScope.EVERYWHERE}|")
    return {name: text for name, text in named.items() if text not in is_wide}


def scope_choices(everywhere: Any = _ALL_CALLERS) -> list[Any]:
    """Return the scopes of a rule: all callers, a tenant, a workspace or an agent."""
    tenants = Tenant.objects.order_by("name")[:500]
    workspaces = Workspace.objects.select_related("tenant").order_by("tenant__name", "name")[:500]
    tokens = Token.objects.filter(revoked_at__isnull=True).order_by("name")[:500]
    return [
        ("everywhere|", everywhere),
        (
            _("Tenant"),
            [(f"tenant|{row.id}", visible(_named("tenant", row.name))) for row in tenants],
        ),
        (
            _("Workspace"),
            [
                (f"workspace|{row.id}", visible(_named("workspace", workspace_label(row))))
                for row in workspaces
            ],
        ),
        (
            _("Agent"),
            [
                ("agent|local", _("local: agents on this machine, over stdio")),
                *((f"agent|token:{row.id}", visible(_named("token", row.name))) for row in tokens),
            ],
        ),
    ]


def scope_label(rule: PolicyRule) -> SafeString | str:
    """Return whose calls a rule matches, with a link."""
    if rule.scope == RuleScope.EVERYWHERE:
        return word("all callers")
    if rule.scope != RuleScope.AGENT:
        row = (
            (Tenant if rule.scope == RuleScope.TENANT else Workspace)
            .objects.filter(id=rule.scope_id)
            .first()
        )
        name = _named(rule.scope, row.name) if row else None
        return link_to(rule.scope, rule.scope_id, label=name)
    kind, _, token_id = rule.scope_id.partition(":")
    if kind != "token":
        return visible(rule.scope_id)
    token = Token.objects.filter(id=token_id).first()
    return link_to("token", token_id, label=_named("token", token.name) if token else None)


def _named(kind: str, name: str) -> str:
    """Return a name with its kind before it: names of different kinds are often the same."""
    return f"{word(kind)} {name}"
