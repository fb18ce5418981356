"""Runs of the agent with a scripted model: what it does, what it receives, how it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runners.llm.base import Message
from runs.agent import loop
from runs.agent.prompt import build_messages
from runs.models import Run, RunEvent, RunStep
from runs.submission.cancel import cancel_run
from runs.submission.retry import retry_run
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import (
    READ,
    SCHEMA,
    SubmitGoal,
    events,
    execute_run,
    tool_results,
)
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import Call, Turn, complete, write_call
from tests.support.runs.concurrent_calls import at_once


def test_a_goal_is_reached_in_turns_and_calls(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("I look.", [READ]), complete("It has one line.")]
    run_id = submit_goal("How many lines has the start?", context="It is a game.")
    run = execute_run(run_id, worker)
    assert run.status == "succeeded", run.error
    assert run.result["answer"] == "It has one line."
    verification = run.result["verification"]
    assert (verification["pass"], verification["score"]) == (None, None)
    assert "no output schema" in verification["reason"]
    assert (run.total_steps, run.done_steps) == (3, 3)
    (read,) = tool_results(model.requests[1])
    assert (read["toolCallId"], read["name"], read["ok"]) == ("r1", "read_file", True)
    assert "changeBg" in str(read["result"])


def test_text_alone_is_an_answer(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("Four.")]
    run = execute_run(submit_goal("What is two and two?"), worker)
    assert (run.status, run.result["answer"]) == ("succeeded", "Four.")


def test_usage_and_cost_are_summed(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("", [READ], tokens=(1000, 10)), replace(complete(), tokens=(2000, 20))]
    run = execute_run(submit_goal(), worker)
    usage = run.result["usage"]
    assert (usage["turns"], usage["inputTokens"], usage["outputTokens"]) == (2, 3000, 30)
    assert usage["costUsd"] == pytest.approx(0.00306)
    (first,) = RunStep.objects.filter(run_id=run.id, index=0)
    assert first.output["usage"]["costUsd"] == pytest.approx(0.00102)


def test_its_events_contain_text_tools_and_the_answer(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("I look at it now.", [READ]), complete("ok", output={"count": 1})]
    run_id = submit_goal(options={"outputSchema": SCHEMA})
    assert execute_run(run_id, worker).status == "succeeded"
    deltas = events(run_id, "chatDelta")
    assert "".join(one["content"] for one in deltas if one["step"] == 0) == "I look at it now."
    assert deltas[-1]["finished"] is True
    used = events(run_id, "toolUsed")
    assert [(one["phase"], one["tool"], one["toolCallId"]) for one in used] == [
        ("start", "read_file", "r1"),
        ("end", "read_file", "r1"),
    ]
    assert (used[0]["args"], used[1]["ok"]) == (READ.arguments, True)
    (output,) = events(run_id, "structuredOutput")
    assert (output["status"], output["output"]) == ("ok", {"count": 1})


def test_without_a_model_a_run_is_accepted_and_ends_with_a_clear_error(
    submit_goal: SubmitGoal, worker: WorkerProcess, agent_settings: Any
) -> None:
    agent_settings.LLM = replace(agent_settings.LLM, model="")
    run = execute_run(submit_goal(), worker)
    assert (run.status, run.error["errorCode"]) == ("failed", "EXECUTION_ERROR")
    assert run.error["details"]["causeCode"] == "MODEL_UNAVAILABLE"
    assert "CONTINUITY_LLM_MODEL" in run.error["message"] + run.error["recovery"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Call("no_such_tool", {}, "x"), "there is no tool"),
        (Call("browser_action", {"action": "launch"}, "x"), "there is no tool"),
        (Call("execute_command", {"scriptName": "dev"}, "x"), "there is no tool"),
        (Call("open_page", {"url": "http://a"}, "x"), "there is no tool"),
        (Call("answer_task_run", {"runId": "r", "answer": "y"}, "x"), "there is no tool"),
        (Call("read_file", {"nope": 1}, "x"), "nope"),
        (Call("read_file", "{broken", "x"), "not valid JSON"),
        (Call("read_result", {"artifactId": 5}, "x"), "artifactId"),
        (Call("ask_followup_question", {}, "x"), "question"),
        (Call("attempt_completion", {"result": 7}, "x"), "result"),
    ],
)
def test_an_invalid_call_is_reported_to_the_model_and_not_made(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, call: Call, message: str
) -> None:
    model.script = [Turn("", [call]), complete()]
    run = execute_run(submit_goal(), worker)
    assert run.status == "succeeded", run.error
    (result,) = tool_results(model.requests[1])
    assert (result["ok"], result["toolCallId"]) == (False, "x")
    assert message in result["error"]["message"]
    assert run.total_steps == 2
    (used,) = events(run.id, "toolUsed")
    assert (used["phase"], used["tool"], used["ok"]) == ("end", call.name, False)
    assert (used["refused"], used["errorCode"]) == (True, result["error"]["code"])


def test_of_two_calls_with_one_id_one_is_made(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    project: Path,
    agent_settings: Any,
) -> None:
    policy = replace(agent_settings.WORKSPACE_POLICY, write_requires_diff=False)
    agent_settings.WORKSPACE_POLICY = policy
    model.script = [Turn("", [write_call("a.txt", "x\n"), write_call("a.txt", "x\n")]), complete()]
    assert execute_run(submit_goal(), worker).status == "succeeded"
    assert (project / "a.txt").read_text() == "x\n"
    assert [one["ok"] for one in tool_results(model.requests[1])] == [True, False]


def test_a_completion_beside_other_calls_waits_for_their_results(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [
        Turn("", [READ, Call("attempt_completion", {"result": "too early"}, "c")]),
        complete("now"),
    ]
    assert execute_run(submit_goal(), worker).result["answer"] == "now"
    read, early = tool_results(model.requests[1])
    assert (read["ok"], early["ok"]) == (True, False)
    assert "alone" in early["error"]["message"]


def test_a_failed_call_is_an_answer_to_the_model(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("", [Call("read_file", {"path": "../secret"})]), complete()]
    run = execute_run(submit_goal(), worker)
    assert run.status == "succeeded"
    (result,) = tool_results(model.requests[1])
    assert (result["ok"], result["error"]["code"]) == (False, "E_DENY_PATH")


def test_a_long_result_is_shown_in_part_and_read_in_chunks(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, project: Path
) -> None:
    (project / "long.txt").write_text("".join(f"line {n}\n" for n in range(8000)), "utf-8")

    def answer(request: ModelRequest) -> Turn:
        if len(model.requests) == 1:
            return Turn("", [Call("read_file", {"path": "long.txt"})])
        if len(model.requests) == 2:
            stored = tool_results(request)[0]
            return Turn(
                "", [Call("read_result", {"artifactId": stored["artifactId"], "offset": 20_000})]
            )
        return complete()

    model.answer = answer
    run = execute_run(submit_goal(), worker)
    assert run.status == "succeeded", run.error
    shown, more = tool_results(model.requests[2])
    assert (shown["truncated"], more["ok"], more["result"]["offset"]) == (True, True, 20_000)
    assert len(json.dumps(shown)) < 8000
    assert "line 2" in more["untrusted"]


def test_a_stored_result_of_another_run_is_not_read(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("first")]
    first = execute_run(submit_goal(), worker)
    artifact_id = (
        first.result
        and RunEvent.objects.filter(run_id=first.id, type="artifact.created")
        .get()
        .data["artifactId"]
    )
    model.script = [Turn("", [Call("read_result", {"artifactId": artifact_id})]), complete()]
    execute_run(submit_goal(), worker)
    (result,) = tool_results(model.requests[-1])
    assert (result["ok"], result["error"]["code"]) == (False, "ARTIFACT_NOT_FOUND")


def test_a_cancel_closes_the_connection_to_the_model(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, principal: Principal
) -> None:
    model.script = [Turn("abc", stall_at=10)]
    run_id = submit_goal()

    def cancel() -> None:
        model.wait_for(1)
        assert cancel_run(principal=principal, run_id=run_id)["success"]

    at_once([worker.work, cancel])
    assert model.requests[0].disconnected.wait(60)
    assert Run.objects.get(id=run_id).status == "canceled"


def test_a_retry_continues_after_the_complete_turns(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, principal: Principal
) -> None:
    model.script = [Turn("I look.", [READ]), Turn(status=400)]
    first = execute_run(submit_goal(), worker)
    assert first.status == "failed"
    model.script = [complete("now")]
    again = execute_run(retry_run(principal=principal, run_id=first.id).run_id, worker)
    assert (again.status, again.result["answer"]) == ("succeeded", "now")
    assert (again.total_steps, again.done_steps) == (3, 3)
    assert [one["ok"] for one in tool_results(model.requests[-1])] == [True]


def test_the_key_is_nowhere_but_in_the_request(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, agent_settings: Any
) -> None:
    key = agent_settings.LLM.api_key
    model.script = [Turn("", [READ]), Turn(status=401, body=f'{{"error": {{"message": "{key}"}}}}')]
    run = execute_run(submit_goal(), worker)
    assert run.error["details"]["causeCode"] == "MODEL_UNAVAILABLE"
    rows = [run, *RunStep.objects.filter(run_id=run.id), *RunEvent.objects.filter(run_id=run.id)]
    assert all(key not in str(vars(row)) for row in rows)
    assert model.requests[0].key == key


def test_a_run_canceled_while_a_turn_is_prepared_sends_no_request(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    principal: Principal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model.script = [Turn("", [READ]), complete("never requested")]
    run_id, prepared = submit_goal(), []

    def cancel_before_second_turn(*args: Any, **values: Any) -> list[Message]:
        prepared.append(build_messages(*args, **values))
        if len(prepared) == 2:
            at_once([lambda: cancel_run(principal=principal, run_id=run_id)])
        return prepared[-1]

    monkeypatch.setattr(loop, "build_messages", cancel_before_second_turn)
    assert execute_run(run_id, worker).status == "canceled"
    assert (len(prepared), len(model.requests)) == (2, 1)
