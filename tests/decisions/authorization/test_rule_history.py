"""What a rule would have changed: calls of the last seven days, from the audit log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from decisions.audit import record as recording
from decisions.audit.record import AuditEvent, record_all
from decisions.authorization import rule_history
from decisions.authorization.authorize import admit_call, tool_call_request
from decisions.authorization.policy_rules import RuleFields, create_rule, draft_rule
from decisions.authorization.rule_history import RuleHistory, history_of
from decisions.foundation.errors import ConfirmationRequired, PolicyDenied
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.calls.information.known_calls import API_CALLS
from tests.support.audit.audit_attacks import attack

ROOT = Path(__file__).parent.parent.parent.parent


def called(principal: Principal, tool: str, target: str = "", times: int = 1, **more: Any) -> None:
    """Record allowed calls, as the product does."""
    details = {"tool": tool, **({"targetId": target} if target else {}), **more}
    scope = principal.tenant_id, principal.workspace_id
    event = AuditEvent("tool.called", principal.id, "tool", tool, *scope, details)
    record_all([event] * times)


def history(verdict: str, tool: str, target: str = "", **scope: str) -> RuleHistory:
    fields = RuleFields(verdict, tool=tool, target_id=target, reason="test", **scope)
    return history_of(draft_rule(fields))


def changes(found: RuleHistory) -> dict[tuple[str, str, str], int]:
    return {(group.tool, group.target_id, group.before): group.count for group in found.groups}


def test_calls_that_a_rule_would_have_decided_otherwise_are_counted_by_tool_and_decision(
    principal: Principal,
) -> None:
    called(principal, "read_page", times=3)
    called(principal, "echo", "target_a", times=2)
    with pytest.raises(ConfirmationRequired):
        admit_call(tool_call_request(principal, "bash.exec", {"cmd": "x"}, target_id="target_a"))
    with pytest.raises(PolicyDenied):
        admit_call(tool_call_request(principal, "rm", {}, target_id="target_a"))
    assert changes(history("deny", "*")) == {
        ("read_page", "", "allow"): 3,
        ("echo", "target_a", "allow"): 2,
        ("bash.exec", "target_a", "confirm"): 1,
    }
    assert changes(history("allow", "*", "target_a")) == {
        ("bash.exec", "target_a", "confirm"): 1,
        ("rm", "target_a", "deny"): 1,
    }
    assert changes(history("allow", "bash.exec")) == {("bash.exec", "target_a", "confirm"): 1}
    found = history("confirm", "read_page")
    assert (found.count, found.examined, len(found.groups[0].examples)) == (3, 3, 3)


def test_calls_outside_of_a_rules_scope_and_those_that_another_rule_decides_do_not_count(
    principal: Principal,
) -> None:
    called(principal, "read_page")
    elsewhere = {"scope": "agent", "scope_id": "local"}
    mine = {"scope": "workspace", "scope_id": principal.workspace_id}
    assert history("deny", "read_page", **mine).count == 1
    create_rule(RuleFields("deny", tool="read_page", reason="test"), actor="t")
    assert history("confirm", "read_page", **mine).count == 0
    assert history("deny", "open_page", **mine).count == 0
    assert history("deny", "read_page", **elsewhere).examined == (principal.id == "local")


def test_a_confirmed_call_counts_once_as_confirmed(principal: Principal) -> None:
    request = tool_call_request(
        principal, "bash.exec", {"cmd": "x"}, target_id="target_a", target_state="1"
    )
    with pytest.raises(ConfirmationRequired):
        admit_call(request)
    called(principal, "bash.exec", "target_a", argsDigest=request.digest)
    assert changes(history("deny", "bash.exec")) == {("bash.exec", "target_a", "confirm"): 1}


@pytest.mark.parametrize("verdict", ["deny", "confirm"])
def test_a_call_that_another_tools_rule_restricted_stays_so_when_its_own_tool_is_allowed(
    principal: Principal, verdict: str
) -> None:
    create_rule(RuleFields(verdict, tool="submit_form", reason="test"), actor="t")
    submits = tool_call_request(
        principal, "click_element", {}, is_builtin=True, covers=frozenset({"submit_form"})
    )
    with pytest.raises((ConfirmationRequired, PolicyDenied)):
        admit_call(submits)
    found = history("allow", "click_element")
    assert (found.count, found.examined) == (0, 1)
    assert history("allow", "*").count == 0


def test_submits_of_runs_count_by_their_template(principal: Principal) -> None:
    scope = principal.tenant_id, principal.workspace_id
    details = {"templateId": "agent_task"}
    record_all([AuditEvent("run.submitted", principal.id, "run", "run_1", *scope, details)])
    found = changes(history("deny", "run_task_template", "agent_task"))
    assert found == {("run_task_template", "agent_task", "allow"): 1}
    assert history("deny", "run_task_template", "search_extract").count == 0


def test_only_the_last_days_and_a_bounded_number_of_rows_are_read(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LastWeek(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(UTC) - timedelta(days=8)

    monkeypatch.setattr(recording, "datetime", LastWeek)
    called(principal, "read_page", times=2)
    monkeypatch.undo()
    called(principal, "read_page", times=5)
    found = history("deny", "read_page")
    assert (found.count, found.is_cut) == (5, False)
    monkeypatch.setattr(rule_history, "ROWS", 3)
    found = history("deny", "read_page")
    assert (found.count, found.examined, found.is_cut) == (3, 3, True)


@pytest.mark.parametrize(
    ("action", "change"),
    [
        ("tool.called", "created_at = '{no_time}'"),
        ("tool.called", "metadata = '[1]'"),
        ("confirmation.opened", "metadata = '[1]'"),
        ("confirmation.opened", "resource_id = '\u00b2'"),
    ],
)
def test_a_row_that_continuity_did_not_write_is_skipped_and_reported(
    principal: Principal, action: str, change: str
) -> None:
    called(principal, "read_page", times=2)
    with pytest.raises(ConfirmationRequired):
        admit_call(tool_call_request(principal, "bash.exec", {"cmd": "x"}, target_id="target_a"))
    forged = AuditEntry.objects.filter(action=action).latest("id")
    change = change.format(no_time="never" if connection.vendor == "sqlite" else "12026-01-01Z")
    attack(f"UPDATE {{rows}} SET {change} WHERE id = %(id)s", id=forged.id)  # noqa: S608
    found = history("deny", "*")
    assert (found.examined, found.skipped) == (2, 1)


def test_the_names_of_calls_are_those_of_the_documentation() -> None:
    text = (ROOT / "docs/confirmations.md").read_text()
    table = text.partition("## Names of calls in rules")[2].partition("\n\n**")[0]
    assert [name for name in API_CALLS if f"`{name}`" not in table] == []
