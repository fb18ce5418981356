"""Policy and target of a direct call are tested again in the statement that records its start: what
changes after they were read applies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decisions.authorization.authorize import admit_call
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.models import AuditEntry, PolicyRule
from runners.models import ExecutionTarget
from runners.targets.targets import TargetFields, change_target
from runs.calls.direct import call as direct_call
from runs.models import OpenCall
from tests.support.runners.tool_client import ToolClient

PREVIEW = {"path": "game/scene/new.txt", "content": "a:b;\n", "dryRun": True}


def after_authorization(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Make a change once, between the authorization of a direct call and its start."""
    changes = [change]

    def admit(request: Any) -> Any:
        approval = admit_call(request)
        if changes:
            changes.pop()()
        return approval

    monkeypatch.setattr(direct_call, "admit_call", admit)


def audited(action: str) -> int:
    return AuditEntry.objects.filter(action=action).count()


def test_a_rule_created_after_the_authorization_denies_the_call(
    tool_client: ToolClient, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = RuleFields("deny", tool="write_to_file", reason="of a test")
    after_authorization(monkeypatch, lambda: create_rule(fields, actor="test"))
    assert tool_client.call("write_to_file", PREVIEW)[0] == "E_POLICY_VIOLATION"
    assert (audited("tool.called"), audited("policy.denied")) == (0, 1)


def test_a_folder_disabled_after_the_authorization_is_not_used(
    tool_client: ToolClient, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disable() -> None:
        target = ExecutionTarget.objects.get()
        scope = target.tenant_id, target.workspace_id
        fields = TargetFields(*scope, target.name, enabled=False, config=target.config)
        change_target(target.id, fields, actor="test")

    assert tool_client.call("list_files", {"path": "."})[0] == "OK"  # creates the target
    after_authorization(monkeypatch, disable)
    assert tool_client.call("write_to_file", PREVIEW)[0] == "E_TOOL_DISABLED"
    assert audited("tool.called") == 1


def test_a_rule_that_still_allows_the_call_lets_it_start_once(
    tool_client: ToolClient, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = RuleFields("deny", tool="read_file", reason="of a test")
    after_authorization(monkeypatch, lambda: create_rule(fields, actor="test"))
    assert tool_client.call("write_to_file", PREVIEW)[0] == "OK"
    assert (audited("tool.called"), audited("tool.succeeded")) == (1, 1)
    assert not OpenCall.objects.exists()


def test_a_call_is_not_made_while_the_rules_change_all_the_time(
    tool_client: ToolClient, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def admit(request: Any) -> Any:
        approval = admit_call(request)
        create_rule(
            RuleFields("deny", tool=f"tool_{PolicyRule.objects.count()}", reason="test"),
            actor="test",
        )
        return approval

    monkeypatch.setattr(direct_call, "admit_call", admit)
    assert tool_client.call("write_to_file", PREVIEW)[0] != "OK"
    assert audited("tool.called") == 0
