"""People and policy in runs of the agent: questions, confirmations, and the offered tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decisions.authorization.confirmations import refuse
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.models import Run
from runs.submission.answer import answer_run
from runs.submission.resume import resume_settled_runs
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import READ, SubmitGoal, events, execute_run, tool_results
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete, write_call
from tests.support.decisions.confirmations import answer_confirmation, confirm


def test_a_question_makes_the_run_wait_for_its_answer(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, principal: Principal
) -> None:
    questions = [
        Turn("", [Call("ask_followup_question", {"question": f"{word}?"})]) for word in "AB"
    ]
    model.script = [*questions, complete()]
    run = execute_run(submit_goal(), worker)
    assert (run.status, run.lease_owner) == ("running", None)
    assert run.waiting_for["type"] == "answer"
    assert run.waiting_for["question"] == "A?"
    answer_run(principal=principal, run_id=run.id, answer="blue")
    run = execute_run(run.id, worker)
    assert run.waiting_for["question"] == "B?"
    answer_run(principal=principal, run_id=run.id, answer="red")
    assert execute_run(run.id, worker).status == "succeeded"
    assert [one["result"]["answer"] for one in tool_results(model.requests[2])] == ["blue", "red"]
    phases = [one["phase"] for one in events(run.id, "toolUsed")]
    assert phases == ["start", "end", "start", "end"]


def test_a_question_without_an_answer_in_time_is_reported_to_the_model(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, agent_settings: Any
) -> None:
    agent_settings.CONFIRM_TTL_S = -1
    model.script = [Turn("", [Call("ask_followup_question", {"question": "A?"})]), complete()]
    run_id = submit_goal()
    assert execute_run(run_id, worker).waiting_for is not None
    assert resume_settled_runs() == 1
    assert execute_run(run_id, worker).status == "succeeded"
    assert tool_results(model.requests[1])[0]["error"]["code"] == "NO_ANSWER"
    end = events(run_id, "toolUsed")[-1]
    assert (end["phase"], end["ok"], end["errorCode"]) == ("end", False, "NO_ANSWER")


@pytest.mark.parametrize(("decide", "ok"), [(confirm, True), (refuse, False)])
def test_a_call_that_needs_confirmation_makes_the_run_wait(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    project: Path,
    agent_settings: Any,
    decide: Callable[..., Any],
    ok: bool,
) -> None:
    policy = replace(agent_settings.WORKSPACE_POLICY, write_requires_diff=False)
    agent_settings.WORKSPACE_POLICY = policy
    create_rule(RuleFields("confirm", tool="write_to_file", reason="test"), actor="t")
    model.script = [Turn("", [READ, write_call("a.txt", "x\n")]), complete()]
    run = execute_run(submit_goal(), worker)
    assert run.waiting_for["type"] == "confirmation"
    assert not (project / "a.txt").exists()
    answer_confirmation(run, decide)
    assert execute_run(run.id, worker).status == "succeeded"
    assert [one["ok"] for one in tool_results(model.requests[1])] == [True, ok]
    assert (project / "a.txt").exists() == ok


def test_a_denied_call_is_reported_to_the_model(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    create_rule(RuleFields("deny", tool="read_file", reason="test"), actor="t")
    model.script = [Turn("", [READ]), complete()]
    run = execute_run(submit_goal(), worker)
    assert run.status == "succeeded"
    assert tool_results(model.requests[1])[0]["error"]["code"] == "POLICY_DENIED"
    assert AuditEntry.objects.filter(action="policy.denied", resource_id=run.id).exists()


def test_only_requested_tools_are_offered_and_called(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("", [READ]), complete()]
    execute_run(submit_goal(tools=["list_files"]), worker)
    always_offered = {"ask_followup_question", "attempt_completion", "read_result"}
    assert set(model.requests[0].tools) == {"list_files"} | always_offered
    assert tool_results(model.requests[1])[0]["ok"] is False


def test_a_tool_that_the_agent_cannot_have_is_rejected_at_submit(submit_goal: SubmitGoal) -> None:
    with pytest.raises(InvalidInput, match=r"inputs\.tools"):
        submit_goal(tools=["browser_action"])


def test_a_caller_with_read_scope_has_an_agent_with_read_tools_only(
    model: ModelServer,
    project: Path,
    principal: Principal,
    worker: WorkerProcess,
    agent_settings: Any,
) -> None:
    caller = replace(principal, scopes=frozenset({"runs:write", "tools:read"}))
    model.script = [Turn("", [write_call("a.txt", "x")]), complete()]
    submit_run(
        principal=caller, template_id="agent_task", inputs={"goal": "x"}, options={"mode": "async"}
    )
    worker.work()
    assert "write_to_file" not in model.requests[0].tools
    assert not (project / "a.txt").exists()


@pytest.mark.parametrize("tool", ["execute_command", "browser_action"])
def test_developer_tools_are_not_offered_to_the_agent_even_in_developer_mode(
    submit_goal: SubmitGoal, agent_settings: Any, tool: str
) -> None:
    policy = replace(agent_settings.WORKSPACE_POLICY, developer=True)
    agent_settings.WORKSPACE_POLICY = policy
    assert tool not in Run.objects.get(id=submit_goal()).inputs["tools"]
    with pytest.raises(InvalidInput, match=r"inputs\.tools"):
        submit_goal(tools=[tool])
