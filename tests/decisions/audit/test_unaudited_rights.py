# ruff: noqa: S608  (attacks are plain SQL)
"""verify_audit names rights that were written to the database by SQL."""

from __future__ import annotations

from contextlib import suppress
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection

from decisions.authorization.policy_rules import RuleFields, change_rule, create_rule, retire_rule
from decisions.identity.principals import Principal, create_token
from decisions.models import PolicyRule, Token


@pytest.fixture
def rule(principal: Principal) -> PolicyRule:
    """A rule that was changed, beside a retired one and a token."""
    fields = RuleFields("confirm", tool="bash.exec", reason="it is risky")
    key = create_rule(fields, actor="t").key
    retired = create_rule(RuleFields("deny", tool="file.write", reason="closed"), actor="t")
    retire_rule(retired.key, actor="t")
    create_token(name="tests", trust="local")
    return change_rule(key, RuleFields("deny", tool="bash.exec", reason="no"), actor="t")


def run_sql(statement: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        assert cursor.rowcount == 1


def named() -> list[str]:
    """Return what verify_audit prints about rights."""
    out = StringIO()
    with suppress(CommandError):  # other faults: the rows of this test are not sealed
        call_command("verify_audit", stdout=out)
    return [line.strip() for line in out.getvalue().splitlines() if line.startswith("  ")]


def test_rights_that_continuity_wrote_are_not_named(rule: PolicyRule) -> None:
    assert named() == []


@pytest.mark.parametrize("metadata", ["[]", '"x"', "12", "{}"])
def test_a_forged_row_explains_nothing(rule: PolicyRule, metadata: str) -> None:
    """It is a fault of the log, which verify_audit prints, too."""
    names = "tenant_id, workspace_id, actor, resource_type, resource_id, created_at"
    for action in ("policy_rule.changed", "token.created"):
        run_sql(
            f"INSERT INTO decisions_auditentry (action, metadata, mac, {names})"
            f" SELECT action, %s, 'f', {names} FROM decisions_auditentry WHERE id ="
            " (SELECT max(id) FROM decisions_auditentry WHERE action = %s)",
            metadata,
            action,
        )
    assert named() == []
    with pytest.raises(CommandError, match="NOT intact: 2 faults"):
        call_command("verify_audit", stdout=StringIO())


def copy_rule(rule: PolicyRule) -> str:
    """Insert a rule that allows a tool."""
    columns = "version, scope, scope_id, target_id, reason, created_by, created_at, retired_by"
    run_sql(
        f"INSERT INTO decisions_policyrule (key, verdict, tool, {columns})"
        f" SELECT 'rule_x', 'allow', '*', {columns} FROM decisions_policyrule WHERE id = %s",
        rule.pk,
    )
    return "policy rule rule_x (allow *, everywhere): no audit row records it"


def edit_rule(rule: PolicyRule) -> str:
    run_sql("UPDATE decisions_policyrule SET verdict = 'allow' WHERE id = %s", rule.pk)
    return f"policy rule {rule.key} (allow bash.exec, everywhere): it differs from its newest audit"


def activate_rule(rule: PolicyRule) -> str:
    retired = PolicyRule.objects.get(tool="file.write")
    run_sql("UPDATE decisions_policyrule SET retired_at = NULL WHERE id = %s", retired.pk)
    return f"policy rule {retired.key} (deny file.write, everywhere): it differs from its newest"


def remove_rule(rule: PolicyRule) -> str:
    run_sql("DELETE FROM decisions_policyrule WHERE id = %s", rule.pk)
    return f"policy rule {rule.key}: its newest audit row"


def raise_token(rule: PolicyRule) -> str:
    token = Token.objects.get()
    run_sql("UPDATE decisions_token SET scopes = %s WHERE id = %s", '["confirm"]', token.id)
    return f"token {token.id} (tests): its scopes or trust differ from its audit row"


def insert_token(rule: PolicyRule) -> str:
    columns = "workspace_id, acts_for, scopes, trust, created_at"
    run_sql(
        f"INSERT INTO decisions_token (id, name, digest, {columns})"
        f" SELECT 'tok_x', 'x', 'd', {columns} FROM decisions_token WHERE name = %s",
        "tests",
    )
    return "token tok_x (x): no audit row records its creation"


def insert_superuser(rule: PolicyRule) -> str:
    get_user_model().objects.create_superuser("mallory", password="chosen")
    return "operator mallory (superuser): no audit row records the creation"


@pytest.mark.parametrize(
    "attack",
    [
        copy_rule,
        edit_rule,
        activate_rule,
        remove_rule,
        raise_token,
        insert_token,
        insert_superuser,
    ],
)
def test_a_right_that_was_written_by_sql_is_named(rule: PolicyRule, attack: Any) -> None:
    expected = attack(rule)
    (line,) = named()
    assert line.startswith(expected)
