"""A confirmed change of a target does what the person was shown, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from decisions.authorization.authorize import admit_call
from decisions.authorization.decision_pages import as_text, decision_page
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import DEFAULT_SCOPES
from decisions.models import Confirmation, Decision, PolicyRule
from runners.models import ExecutionTarget
from runners.targets import services
from runners.targets.targets import TargetFields, change_target
from tests.support.decisions.confirmations import confirm
from tests.support.rest.rest import json_of
from tests.support.runners.runner_fixtures import MakeRunner
from tests.support.runners.stub_runner import responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

Call = Callable[[], httpx.Response]
NEW = {"name": "renamed", "endpoint": "http://127.0.0.1:18099/execute", "config": {"region": "x"}}


@pytest.fixture
def admin(client_with: Callable[..., httpx.Client]) -> httpx.Client:
    """A client whose token may write targets."""
    return client_with(scopes=DEFAULT_SCOPES | {"targets:admin"}, trust="local")


def call_on(admin: httpx.Client, target: ExecutionTarget, tool: str) -> Call:
    """Require a confirmation of the call; return the function that makes it."""
    create_rule(RuleFields("confirm", tool=tool, reason="risky"), actor="test")
    path = f"/api/v1/targets/{target.id}"
    return {
        "delete_target": lambda: admin.delete(path),
        "replace_target": lambda: admin.put(path, json=NEW),
        "probe_target": lambda: admin.post(f"{path}/probe"),
    }[tool]


def requested(answer: httpx.Response) -> int:
    body = json_of(answer, 202)
    number: int = body["details"]["decisionId"]
    return number


def approve(answer: httpx.Response) -> int:
    number = requested(answer)
    confirm(decision_id=number, by="admin:ann", how="admin")
    return number


def shown(number: int) -> str:
    return as_text(decision_page(Decision.objects.get(pk=number)))


def rename(target: ExecutionTarget, name: str = "production") -> None:
    fields = TargetFields(
        tenant_id=target.tenant_id,
        workspace_id=target.workspace_id,
        name=name,
        kind=target.kind,
        endpoint=target.endpoint,
    )
    change_target(target.id, fields, actor="test")


def add_rule(target: ExecutionTarget, tool: str = "echo") -> None:
    rule = RuleFields("deny", tool=tool, target_id=target.id, reason="never echo")
    create_rule(rule, actor="test")


def test_the_page_of_a_deletion_shows_the_target_and_the_rules_that_it_retires(
    admin: httpx.Client, make_runner: MakeRunner
) -> None:
    target = make_runner(name="builder", auth_token="s3cret-token")
    add_rule(target)
    text = shown(requested(call_on(admin, target, "delete_target")()))
    for part in ("name: builder", target.endpoint or "", "token: set", "deny echo", "never echo"):
        assert part in text
    assert "s3cret" not in text


def test_the_page_of_a_change_shows_the_fields_before_and_after(
    admin: httpx.Client, make_runner: MakeRunner
) -> None:
    target = make_runner(name="builder", is_default=True)
    text = shown(requested(call_on(admin, target, "replace_target")()))
    for part in ("-name: builder", "+name: renamed", "-default: yes", "+default: no"):
        assert part in text


@pytest.mark.parametrize("tool", ["delete_target", "replace_target", "probe_target"])
def test_an_approved_change_is_not_made_to_the_target_after_a_change(
    admin: httpx.Client, make_runner: MakeRunner, tool: str
) -> None:
    with stub_runner(responding_with({"ok": True})) as runner:
        target = make_runner(name="builder", endpoint=runner.url)
        call = call_on(admin, target, tool)
        approved = approve(call())
        rename(target)
        again = requested(call())
        row = ExecutionTarget.objects.get()
        assert (again != approved, row.name, row.probed_at) == (True, "production", None)
        assert "name: production" in shown(again)
        confirm(decision_id=again, by="admin:ann", how="admin")
        assert call().is_success


def test_an_approved_deletion_retires_no_rule_that_the_person_did_not_see(
    admin: httpx.Client, make_runner: MakeRunner
) -> None:
    target = make_runner(name="builder")
    call = call_on(admin, target, "delete_target")
    approved = approve(call())
    add_rule(target)
    assert requested(call()) != approved
    assert PolicyRule.objects.filter(target_id=target.id, retired_at__isnull=True).count() == 1


@pytest.mark.parametrize("tool", ["delete_target", "replace_target", "probe_target"])
def test_a_change_after_the_approval_was_found_is_found_under_the_lock(
    admin: httpx.Client, make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    target = make_runner(name="builder")
    call = call_on(admin, target, tool)
    approved = approve(call())

    def admit_then_rename(*args: Any) -> Any:
        found = admit_call(*args)
        rename(target)
        return found

    monkeypatch.setattr(services, "admit_call", admit_then_rename)
    answer = call()
    assert (answer.status_code, "has changed" in answer.text) == (409, True), answer.text
    assert ExecutionTarget.objects.get().name == "production"
    assert Confirmation.objects.get(decision_id=approved).used_at is None
