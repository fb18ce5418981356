"""Which policy rule decides on a submit, and from when on a changed rule applies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from decisions.authorization.policy_rules import (
    RuleFields,
    change_rule,
    create_rule,
    retire_rule,
)
from decisions.foundation.errors import ConfirmationRequired, PolicyDenied
from decisions.identity.principals import Principal
from runs.models import Run

Submit = Callable[..., str]
SUBMIT, TEMPLATE = "run_task_template", "test_stepwise"


def add_rule(verdict: str, scope: str = "everywhere", scope_id: str = "", **match: str) -> str:
    """Create a rule for submits and return its key."""
    fields = RuleFields(verdict, scope, scope_id, **{"tool": SUBMIT, "reason": "test", **match})
    return create_rule(fields, actor="test").key


def test_a_deny_rule_refuses_a_submit_that_a_narrower_rule_allows(
    principal: Principal, submit: Submit
) -> None:
    add_rule("deny", tool="*")
    add_rule("allow", "agent", principal.id, target_id=TEMPLATE)
    with pytest.raises(PolicyDenied):
        submit()
    assert not Run.objects.exists()


def test_the_rule_with_the_narrowest_scope_decides_on_a_submit(
    principal: Principal, submit: Submit
) -> None:
    add_rule("allow", "tenant", principal.tenant_id)
    add_rule("confirm", "workspace", principal.workspace_id)
    with pytest.raises(ConfirmationRequired):
        submit()
    assert not Run.objects.exists()


def test_the_rule_about_the_template_decides_on_a_submit(submit: Submit) -> None:
    add_rule("allow")
    add_rule("confirm", target_id=TEMPLATE)
    with pytest.raises(ConfirmationRequired):
        submit()
    assert not Run.objects.exists()


def test_a_rule_of_another_workspace_does_not_apply_to_a_submit(
    outsider: Principal, submit: Submit
) -> None:
    add_rule("deny", "workspace", outsider.workspace_id)
    assert submit()


def test_a_rule_about_another_template_does_not_apply_to_a_submit(submit: Submit) -> None:
    add_rule("deny", target_id="test_calling")
    assert submit()


def test_a_new_changed_or_retired_rule_applies_to_the_next_submit(submit: Submit) -> None:
    submit()
    key = add_rule("deny")
    with pytest.raises(PolicyDenied):
        submit()
    change_rule(key, RuleFields("confirm", tool=SUBMIT, reason="test"), actor="test")
    with pytest.raises(ConfirmationRequired):
        submit()
    retire_rule(key, actor="test")
    submit()
    assert Run.objects.count() == 2
