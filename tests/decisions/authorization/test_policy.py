"""Policy: which rule applies, and when a changed rule takes effect."""

from __future__ import annotations

from typing import Any

import pytest

from decisions.authorization import policy
from decisions.authorization.policy import current_policy
from decisions.authorization.policy_rules import (
    RuleFields,
    change_rule,
    create_rule,
    list_versions,
    retire_rule,
)
from decisions.foundation.errors import Conflict, InvalidInput, NotFound
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, PolicyRule
from runners.actions.catalogue import ACTIONS
from runners.targets.targets import Caller
from tests.support.runs.concurrent_calls import at_once

ACTOR: dict[str, Any] = {"actor": "admin:ann"}


def verdict_of(principal: Principal, tool: str = "fill_field", target_id: str | None = None) -> str:
    policy = current_policy(Caller.of(principal))
    return policy.evaluate(tool, target_id).decision


def test_without_rules_built_in_tools_are_allowed(principal: Principal) -> None:
    assert verdict_of(principal) == "allow"


@pytest.mark.parametrize("tool", ["bash.exec", "http.request", "file.write"])
def test_without_rules_high_risk_tools_need_confirmation(principal: Principal, tool: str) -> None:
    assert verdict_of(principal, tool) == "confirm"
    assert verdict_of(principal, tool, "target_1") == "confirm"


def test_without_rules_other_tools_of_a_target_are_denied(principal: Principal) -> None:
    assert verdict_of(principal, "fetch", "target_1") == "deny"


def test_a_new_rule_applies_to_the_next_call(principal: Principal) -> None:
    assert verdict_of(principal) == "allow"
    rule = create_rule(RuleFields("deny", tool="fill_field", reason="test"), **ACTOR)
    assert verdict_of(principal) == "deny"
    retire_rule(rule.key, **ACTOR)
    assert verdict_of(principal) == "allow"


def test_a_deny_rule_always_wins(principal: Principal) -> None:
    create_rule(RuleFields("deny", tool="*", reason="test"), **ACTOR)
    create_rule(RuleFields("allow", "agent", principal.id, "fill_field", reason="test"), **ACTOR)
    assert verdict_of(principal) == "deny"


def test_the_narrowest_scope_wins(principal: Principal) -> None:
    create_rule(RuleFields("confirm", tool="fill_field", reason="test"), **ACTOR)
    assert verdict_of(principal) == "confirm"
    create_rule(
        RuleFields("allow", "tenant", principal.tenant_id, tool="*", reason="test"), **ACTOR
    )
    assert verdict_of(principal) == "allow"
    create_rule(
        RuleFields("confirm", "workspace", principal.workspace_id, tool="*", reason="test"), **ACTOR
    )
    assert verdict_of(principal) == "confirm"
    create_rule(RuleFields("allow", "agent", principal.id, tool="*", reason="test"), **ACTOR)
    assert verdict_of(principal) == "allow"


def test_within_a_scope_the_narrowest_match_wins(principal: Principal) -> None:
    create_rule(RuleFields("confirm", tool="*", reason="test"), **ACTOR)
    assert verdict_of(principal, "fetch", "target_1") == "confirm"
    create_rule(RuleFields("allow", tool="*", target_id="target_1", reason="test"), **ACTOR)
    assert verdict_of(principal, "fetch", "target_1") == "allow"
    create_rule(RuleFields("confirm", tool="fetch", reason="test"), **ACTOR)
    assert verdict_of(principal, "fetch", "target_1") == "confirm"
    create_rule(RuleFields("allow", tool="fetch", target_id="target_1", reason="test"), **ACTOR)
    assert verdict_of(principal, "fetch", "target_1") == "allow"
    assert verdict_of(principal, "fetch", "target_2") == "confirm"


def test_a_wildcard_rule_of_a_target_includes_its_high_risk_tools(
    principal: Principal,
) -> None:
    create_rule(RuleFields("allow", tool="*", target_id="target_1", reason="test"), **ACTOR)
    assert verdict_of(principal, "bash.exec", "target_1") == "allow"
    assert verdict_of(principal, "bash.exec") == "confirm"


def test_a_rule_does_not_apply_to_another_workspace(
    principal: Principal, outsider: Principal
) -> None:
    create_rule(
        RuleFields("deny", "workspace", principal.workspace_id, tool="*", reason="test"), **ACTOR
    )
    assert (verdict_of(principal), verdict_of(outsider)) == ("deny", "allow")


def test_the_verdict_has_the_rule_and_its_reason(principal: Principal) -> None:
    rule = create_rule(RuleFields("deny", tool="fill_field", reason="not here"), **ACTOR)
    policy = current_policy(Caller(principal.id, "t", "w", "local"))
    verdict = policy.evaluate("fill_field", None)
    assert (verdict.rule, verdict.reason) == (f"{rule.key} v1", "not here")


def test_a_changed_rule_keeps_its_previous_version(principal: Principal) -> None:
    rule = create_rule(RuleFields("deny", tool="fill_field", reason="test"), **ACTOR)
    change_rule(
        rule.key, RuleFields("confirm", tool="fill_field", reason="test"), actor="admin:bob"
    )
    assert verdict_of(principal) == "confirm"
    assert [(version.version, version.verdict) for version in list_versions(rule.key)] == [
        (2, "confirm"),
        (1, "deny"),
    ]
    previous = PolicyRule.objects.get(key=rule.key, version=1)
    assert (previous.created_by, previous.retired_by) == ("admin:ann", "admin:bob")
    entry = AuditEntry.objects.get(action="policy_rule.changed")
    assert (entry.metadata["verdict"], entry.metadata["before"]["verdict"]) == ("confirm", "deny")


def test_two_active_rules_cannot_have_the_same_conditions(principal: Principal) -> None:
    first = create_rule(RuleFields("deny", tool="fill_field", reason="test"), **ACTOR)
    with pytest.raises(Conflict) as refused:
        create_rule(RuleFields("allow", tool="fill_field", reason="test"), **ACTOR)
    assert refused.value.details == {"rule": first.key}
    assert verdict_of(principal) == "deny"


@pytest.mark.parametrize(
    "fields",
    [
        RuleFields("maybe", tool="*", reason="test"),
        RuleFields("deny", "galaxy", tool="*", reason="test"),
        RuleFields("deny", "workspace", "ws_unknown", tool="*", reason="test"),
        RuleFields("deny", "agent", "token:tok_unknown", tool="*", reason="test"),
        RuleFields("deny", "agent", "tok_unknown", tool="*", reason="test"),
        RuleFields("deny", "tenant", tool="*", reason="test"),
        RuleFields("deny", "everywhere", "ws_1", tool="*", reason="test"),
        RuleFields("deny", tool=" ", reason="test"),
        RuleFields("deny", tool="", reason="test"),
        RuleFields("deny", tool="*"),
        RuleFields("deny", tool="*", reason=" \n"),
    ],
)
def test_an_invalid_rule_is_refused(principal: Principal, fields: RuleFields) -> None:
    with pytest.raises(InvalidInput):
        create_rule(fields, **ACTOR)
    assert not PolicyRule.objects.exists()
    assert not AuditEntry.objects.filter(action__startswith="policy_rule").exists()


def test_concurrent_changes_leave_one_active_version(principal: Principal) -> None:
    rule = create_rule(RuleFields("deny", tool="fill_field", reason="test"), **ACTOR)

    def change() -> str:
        try:
            change_rule(rule.key, RuleFields("confirm", tool="fill_field", reason="test"), **ACTOR)
        except NotFound:
            return "late"
        return "changed"

    results = at_once([change] * 6)
    active = PolicyRule.objects.get(key=rule.key, retired_at__isnull=True)
    assert active.version == results.count("changed") + 1
    assert verdict_of(principal) == "confirm"


def test_rules_are_cached_until_one_changes(
    principal: Principal, django_assert_num_queries: Any
) -> None:
    create_rule(RuleFields("deny", tool="fill_field", reason="test"), **ACTOR)
    verdict_of(principal)
    with django_assert_num_queries(2):
        verdict_of(principal)
        verdict_of(principal, "open_page")
    assert policy._RuleCache.rules.stamp is not None


@pytest.mark.parametrize("target", ["plugin", "plc_1"])
def test_changes_of_pages_in_a_persons_paired_browser_need_a_confirmation(
    principal: Principal, target: str
) -> None:
    rules = current_policy(Caller.of(principal))
    assert set(ACTIONS) >= policy.PAGE_CHANGES
    for tool, decision in [("browser_click", "confirm"), ("browser_observe", "allow")]:
        assert rules.evaluate(tool, target, is_builtin=True).decision == decision
    assert rules.evaluate("browser_click", None, is_builtin=True).decision == "allow"
