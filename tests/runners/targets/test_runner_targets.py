"""Runner selection for a call, the parameters of the request, and the command that adds a
runner.
"""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from decisions.authorization.policy import current_policy
from decisions.foundation.errors import InvalidInput, PolicyDenied, TargetNotFound
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, PolicyRule
from runners.errors import RunnerFailed
from runners.models import ExecutionTarget
from runners.targets.runner_endpoint import find_runner, runner_of
from runners.targets.targets import Caller, TargetFields, change_target
from tests.support.runners.runner_fixtures import ENDPOINT, MakeRunner

pytestmark = pytest.mark.usefixtures("open_loopback")


def test_a_named_runner_precedes_the_workspace_default_and_that_the_tenant_default(
    principal: Principal, make_runner: MakeRunner
) -> None:
    caller = Caller.of(principal)
    with pytest.raises(TargetNotFound):
        find_runner(caller, None)
    of_tenant = make_runner(workspace_id=None, is_default=True)
    assert find_runner(caller, None) == of_tenant
    of_workspace = make_runner(is_default=True)
    assert find_runner(caller, None) == of_workspace
    named = make_runner()
    assert find_runner(caller, named.id) == named


def test_a_runner_of_another_workspace_is_not_found(
    outsider: Principal, make_runner: MakeRunner
) -> None:
    foreign = make_runner(is_default=True)
    for target_id in (foreign.id, "target_missing", None):
        with pytest.raises(TargetNotFound):
            find_runner(Caller.of(outsider), target_id)


def test_a_disabled_runner_is_denied(principal: Principal, make_runner: MakeRunner) -> None:
    disabled = make_runner(enabled=False, is_default=True)
    for target_id in (disabled.id, None):
        with pytest.raises(PolicyDenied) as denied:
            find_runner(Caller.of(principal), target_id)
        assert denied.value.details == {"targetId": disabled.id}


def test_a_runner_is_called_with_its_own_token_and_timeout(
    principal: Principal, make_runner: MakeRunner
) -> None:
    target = make_runner(auth_token="s3cret", config={"timeoutMs": 2_000})
    runner = runner_of(ExecutionTarget.objects.get(id=target.id), Caller.of(principal))
    assert (runner.auth_token, runner.timeout_ms) == ("s3cret", 2_000)
    assert (runner.endpoint, runner.workspace_id) == (ENDPOINT, principal.workspace_id)


def test_a_shared_runner_is_called_for_the_workspace_of_the_caller(
    principal: Principal, make_runner: MakeRunner
) -> None:
    shared = make_runner(workspace_id=None, endpoint=None, config={"endpoint": ENDPOINT})
    runner = runner_of(shared, Caller.of(principal))
    assert (runner.workspace_id, runner.endpoint) == (principal.workspace_id, ENDPOINT)
    assert (runner.auth_token, runner.timeout_ms) == (None, 15_000)


def test_a_token_that_cannot_be_decrypted_fails_the_call(
    principal: Principal, make_runner: MakeRunner, settings: Any
) -> None:
    target = make_runner(auth_token="s3cret")
    settings.CONTINUITY_SECRET_KEYS = ["another key that encrypted nothing"]
    with pytest.raises(RunnerFailed, match="Set the token again"):
        runner_of(target, Caller.of(principal))


def test_the_kind_of_a_target_cannot_change(
    principal: Principal, make_runner: MakeRunner, tmp_path: Any, settings: Any
) -> None:
    settings.WORKSPACE_ROOTS = (tmp_path,)
    fields = TargetFields(
        principal.tenant_id, principal.workspace_id, "a", config={"root": str(tmp_path)}
    )
    with pytest.raises(Exception, match="create a new target"):
        change_target(make_runner().id, fields, actor="test")


def add(*arguments: str) -> tuple[str, str]:
    """Return what `manage.py add_target` printed on stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    call_command("add_target", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def verdict_of(principal: Principal, tool: str, target_id: str) -> str:
    policy = current_policy(Caller.of(principal))
    return policy.evaluate(tool, target_id).decision


def test_the_command_creates_a_target_and_its_rules(principal: Principal) -> None:
    out, err = add(
        "--id",
        "target_laptop",
        "--endpoint",
        ENDPOINT,
        "--auth-token",
        "s3cret",
        "--config",
        json.dumps({"timeoutMs": 60_000}),
        "--allow",
        "bash.exec, echo",
        "--reason",
        "builds",
    )
    assert out == "target_laptop\n"
    target = find_runner(Caller.of(principal), "target_laptop")
    assert runner_of(target, Caller.of(principal)).auth_token == "s3cret"
    assert "s3cret" not in err + str([entry.metadata for entry in AuditEntry.objects.all()])
    verdicts = {
        tool: verdict_of(principal, tool, target.id) for tool in ("bash.exec", "echo", "rm")
    }
    assert verdicts == {"bash.exec": "allow", "echo": "allow", "rm": "deny"}
    assert verdict_of(principal, "bash.exec", "target_other") == "confirm"
    assert set(PolicyRule.objects.values_list("reason", flat=True)) == {"builds"}


@pytest.mark.parametrize("reason", [(), ("--reason", " ")])
def test_tools_are_not_allowed_without_a_reason(
    principal: Principal, reason: tuple[str, ...]
) -> None:
    with pytest.raises(CommandError, match="--allow needs a --reason"):
        add("--id", "target_a", "--endpoint", ENDPOINT, "--allow", "echo", *reason)
    assert not PolicyRule.objects.exists()
    assert not ExecutionTarget.objects.exists()


def test_a_star_allows_every_tool_of_that_target_only(principal: Principal) -> None:
    add("--id", "target_a", "--endpoint", ENDPOINT, "--allow", "*", "--reason", "test")
    assert {verdict_of(principal, tool, "target_a") for tool in ("bash.exec", "any")} == {"allow"}
    assert verdict_of(principal, "any", "target_b") == "deny"


def test_repeating_the_command_creates_the_next_version_and_keeps_the_token(
    principal: Principal,
) -> None:
    arguments = ("--id", "target_a", "--endpoint", ENDPOINT, "--allow", "echo", "--reason", "test")
    add(*arguments, "--auth-token", "s3cret")
    _, err = add(*arguments, "--name", "renamed")
    target = find_runner(Caller.of(principal), "target_a")
    assert (target.version, target.name) == (2, "renamed")
    assert "version 2" in err
    assert runner_of(target, Caller.of(principal)).auth_token == "s3cret"
    assert PolicyRule.objects.get().version == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--endpoint", "http://10.0.0.1/"), "CONTINUITY_EGRESS_ALLOW"),
        (("--config", "[1]"), "not a JSON object"),
        (("--config", '{"timeoutMs": -1}'), "timeoutMs"),
        (("--auth-token", "a b"), "authToken"),
        (("--id", "laptop"), "targetId"),
        (("--id", "target_a/b"), "targetId"),
        (("--kind", "browser"), "kind"),
    ],
)
def test_an_invalid_target_is_refused_with_a_one_sentence_error(
    principal: Principal, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        add(*arguments)
    assert not ExecutionTarget.objects.exists()


def test_the_target_id_of_another_workspace_cannot_be_reused(principal: Principal) -> None:
    add("--id", "target_a", "--endpoint", ENDPOINT, "--workspace", "elsewhere")
    with pytest.raises(CommandError, match="another workspace"):
        add("--id", "target_a", "--endpoint", ENDPOINT)
    assert ExecutionTarget.objects.get().version == 1


def test_a_runner_assigned_to_the_agent_precedes_the_defaults(
    principal: Principal, make_runner: MakeRunner
) -> None:
    caller = Caller.of(principal)
    make_runner(is_default=True)
    make_runner(config={"agents": ["token:other"]})
    assigned = make_runner(workspace_id=None, config={"agents": ["token:other", principal.id]})
    named = make_runner()
    assert find_runner(caller, None) == assigned
    assert find_runner(caller, named.id) == named


@pytest.mark.parametrize("agents", ["local", [5], ["admin:me"], [""], {"local": True}])
def test_agents_are_principals(make_runner: MakeRunner, agents: Any) -> None:
    with pytest.raises(InvalidInput, match=r"config\.agents"):
        make_runner(config={"agents": agents})
