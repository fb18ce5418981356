"""The agent calls tools of runners: under policy, once, on the intended runner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decisions.authorization.confirmations import refuse
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.models import ExecutionTarget
from runners.targets.targets import delete_target
from runs.models import RunStep
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.services import free_port
from tests.support.agent.agent_goals import SubmitGoal, events, execute_run, tool_results
from tests.support.agent.agent_runners import BASH, MakeTarget, offered_tools, received_calls
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.decisions.confirmations import answer_confirmation, confirm
from tests.support.runners.stub_runner import StubRunner, responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")
HELLO = Call("bash_exec", {"cmd": "printf hello"}, "b1")
READ = {"path": "game/scene/start.txt"}


def rows(action: str) -> list[dict[str, Any]]:
    """Return the audit entries with an action."""
    return [one.metadata for one in AuditEntry.objects.filter(action=action).order_by("id")]


@pytest.fixture
def called_target(
    model: ModelServer, make_target: MakeTarget, runner: StubRunner
) -> ExecutionTarget:
    """A runner whose tool a rule allows; the model calls the tool once and completes."""
    model.script = [Turn("", [HELLO]), complete()]
    return make_target(runner.url, BASH, allow=("bash.exec",))


def test_a_call_reaches_the_runner_once_and_is_recorded_everywhere(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    runner: StubRunner,
    called_target: ExecutionTarget,
) -> None:
    run = execute_run(submit_goal(), worker)
    assert run.status == "succeeded", run.error
    assert received_calls(runner) == [{"name": "bash.exec", "args": {"cmd": "printf hello"}}]
    assert runner.requests[0].json["ctx"]["runId"] == run.id
    assert tool_results(model.requests[1])[0]["result"] == "hello"
    assert "".join(one["delta"] for one in events(run.id, "tool.update")) == "hello"
    for one in events(run.id, "toolUsed"):
        assert (one["tool"], one["targetId"]) == ("bash_exec", called_target.id)
    for one in (*rows("tool.called"), *rows("tool.succeeded")):
        assert (one["tool"], one["targetId"]) == ("bash.exec", called_target.id)
    assert len(rows("tool.called")) == len(rows("tool.succeeded")) == 1
    assert RunStep.objects.get(run_id=run.id, index=1).effect == "once"


def test_the_model_receives_its_name_schema_and_runner(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    make_target: MakeTarget,
    runner: StubRunner,
) -> None:
    target = make_target(runner.url, BASH, name="builder")
    model.script = [complete()]
    run = execute_run(submit_goal(), worker)
    tool = offered_tools(model.requests[0])["bash_exec"]
    assert tool["parameters"] == BASH["inputSchema"]
    assert "Run a command line. Executed by the runner builder" in tool["description"]
    assert "A person has to confirm it" in tool["description"]
    assert f"bash.exec@{target.id}" in run.inputs["tools"]


def test_a_denied_tool_is_not_offered_and_a_call_of_it_is_denied(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    make_target: MakeTarget,
    runner: StubRunner,
) -> None:
    make_target(runner.url, BASH, {"name": "deploy"}, allow=("bash.exec",))
    model.script = [Turn("", [Call("deploy", {}, "d")]), complete()]
    run = execute_run(submit_goal(), worker)
    assert run.status == "succeeded"
    assert "bash_exec" in model.requests[0].tools
    assert "deploy" not in model.requests[0].tools
    assert tool_results(model.requests[1])[0]["error"]["code"] == "POLICY_DENIED"
    assert [row["tool"] for row in rows("policy.denied")] == ["deploy"]
    assert runner.requests == []


def test_a_tool_that_is_denied_during_the_run_is_no_longer_offered(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    make_target: MakeTarget,
    runner: StubRunner,
) -> None:
    make_target(runner.url, BASH)
    model.script = [Turn("", [HELLO]), complete()]
    run = execute_run(submit_goal(), worker)
    assert run.waiting_for["type"] == "confirmation"
    create_rule(RuleFields("deny", tool="bash.exec", reason="test"), actor="t")
    answer_confirmation(run, confirm)
    execute_run(run.id, worker)
    assert ["bash_exec" in request.tools for request in model.requests] == [True, False]
    assert tool_results(model.requests[1])[0]["error"]["code"] == "POLICY_DENIED"
    assert runner.requests == []


@pytest.mark.parametrize(("decide", "times"), [(confirm, 1), (refuse, 0)])
def test_a_call_that_needs_confirmation_waits_for_a_person(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    make_target: MakeTarget,
    runner: StubRunner,
    decide: Callable[..., Any],
    times: int,
) -> None:
    make_target(runner.url, BASH)  # of high risk: without a rule it needs confirmation
    model.script = [Turn("", [HELLO]), complete()]
    run = execute_run(submit_goal(), worker)
    assert (run.status, run.waiting_for["type"]) == ("running", "confirmation")
    assert runner.requests == []
    answer_confirmation(run, decide)
    assert execute_run(run.id, worker).status == "succeeded"
    assert len(runner.requests) == times
    assert tool_results(model.requests[1])[0]["ok"] is bool(times)


def test_of_two_runners_with_the_same_tool_the_model_chooses_one(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    make_target: MakeTarget,
    runner: StubRunner,
) -> None:
    with stub_runner(responding_with({"ok": True, "output": "there"})) as second:
        first = make_target(runner.url, BASH, allow=("bash.exec",), name="one")
        other = make_target(second.url, BASH, allow=("bash.exec",), name="two")
        chosen = {"cmd": "x", "continuityTarget": other.id}
        model.script = [
            Turn("", [Call("bash_exec", {"cmd": "x"}, "a"), Call("bash_exec", chosen, "b")]),
            complete(),
        ]
        assert execute_run(submit_goal(), worker).status == "succeeded"
        choice = offered_tools(model.requests[0])["bash_exec"]["parameters"]["properties"]
        assert set(choice["continuityTarget"]["enum"]) == {first.id, other.id}
        without_target, with_target = tool_results(model.requests[1])
        assert first.id in without_target["error"]["message"]
        assert with_target["result"] == "there"
        assert received_calls(second) == [{"name": "bash.exec", "args": {"cmd": "x"}}]
    assert runner.requests == []


def test_a_runner_added_after_submit_is_not_offered_to_the_run(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    make_target: MakeTarget,
    runner: StubRunner,
) -> None:
    run_id = submit_goal()
    make_target(runner.url, BASH, allow=("bash.exec",))
    model.script = [Turn("", [HELLO]), complete()]
    execute_run(run_id, worker)
    assert "bash_exec" not in model.requests[0].tools
    assert "there is no tool" in tool_results(model.requests[1])[0]["error"]["message"]
    assert runner.requests == []


def test_an_unreachable_runner_is_reported_as_unreachable(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    runner: StubRunner,
    called_target: ExecutionTarget,
) -> None:
    run_id = submit_goal()
    delete_target(called_target.id, actor="test")
    assert execute_run(run_id, worker).status == "succeeded"
    assert "bash_exec" not in model.requests[0].tools
    error = tool_results(model.requests[1])[0]["error"]
    assert error["code"] == "TARGET_NOT_FOUND"
    assert called_target.id in error["message"]
    assert runner.requests == []


@pytest.mark.parametrize("local_name", ["read_file", "ask_followup_question", "browser_click"])
def test_a_tool_of_a_runner_with_the_name_of_a_local_tool_is_kept_apart_from_it(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    make_target: MakeTarget,
    runner: StubRunner,
    local_name: str,
) -> None:
    make_target(runner.url, {"name": local_name}, allow=("*",))

    def answer(request: ModelRequest) -> Turn:
        (runner_tool,) = [name for name in request.tools if name.startswith(f"{local_name}_")]
        calls = [
            Call(runner_tool, {"tabId": 1, "question": "?"}, "t"),
            Call("read_file", READ, "o"),
        ]
        return Turn("", calls) if len(model.requests) == 1 else complete()

    model.answer = answer
    run = execute_run(submit_goal(), worker)
    assert (run.status, run.waiting_for) == ("succeeded", None)
    runner_result, local_result = tool_results(model.requests[1])
    assert runner_result["result"] == "hello"
    assert "changeBg" in str(local_result["result"])
    assert [one["name"] for one in received_calls(runner)] == [local_name]


@pytest.mark.parametrize("has_local_tool", [True, False])
def test_the_local_tool_is_the_fallback_only_where_the_agent_has_it(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    make_target: MakeTarget,
    project: Path,
    has_local_tool: bool,
) -> None:
    target = make_target(
        f"http://127.0.0.1:{free_port()}/execute",
        {"name": "read_file"},
        allow=("*",),
        config={"onUnreachable": "fallback_local"},
    )

    def answer(request: ModelRequest) -> Turn:
        (runner_tool,) = [name for name in request.tools if name.startswith("read_file_")]
        return Turn("", [Call(runner_tool, READ, "t")]) if len(model.requests) == 1 else complete()

    model.answer = answer
    local_tools = ["read_file"] if has_local_tool else []
    run = execute_run(submit_goal(tools=[f"read_file@{target.id}", *local_tools]), worker)
    result = tool_results(model.requests[1])[0]
    assert ("changeBg" in str(result.get("result"))) is has_local_tool
    assert (
        len(rows("tool.fell_back")) == len(events(run.id, "tool.fell_back")) == int(has_local_tool)
    )
    if not has_local_tool:
        assert result["error"]["details"]["effect"] == "none"


def test_a_caller_with_read_scope_has_no_runners(
    model: ModelServer,
    project: Path,
    principal: Principal,
    worker: WorkerProcess,
    agent_settings: Any,
    make_target: MakeTarget,
    runner: StubRunner,
) -> None:
    make_target(runner.url, BASH, allow=("bash.exec",))
    caller = replace(principal, scopes=frozenset({"runs:write", "tools:read"}))
    model.script = [Turn("", [HELLO]), complete()]
    submit_run(
        principal=caller, template_id="agent_task", inputs={"goal": "x"}, options={"mode": "async"}
    )
    worker.work()
    assert "bash_exec" not in model.requests[0].tools
    assert runner.requests == []
