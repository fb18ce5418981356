"""Unusual replies of models, models with a small context, and limits: how a run of the agent
handles them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decisions.foundation.errors import InvalidInput
from runs.models import Run, RunEvent, RunStep
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import READ, SCHEMA, SubmitGoal, execute_run, tool_results
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.decisions.schemas import doubled_references

UNSTORABLE = '{"choices": [{"index": 0, "delta": {"content": "a\\u0000b\\ud800c"}}]}'


def test_text_that_no_row_can_store_is_stored_as_far_as_possible(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("", [READ], junk=UNSTORABLE, reports_usage=False), complete()]
    run = execute_run(submit_goal(), worker)
    assert run.status == "succeeded", run.error
    content = RunStep.objects.get(run_id=run.id, index=0).output["content"]
    assert (content, model.requests[1].body["messages"][2]["content"]) == ("a\ufffdb?c",) * 2


def test_an_empty_answer_is_rejected_and_requested_again(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn(""), Turn(" \n"), complete("at last")]
    assert execute_run(submit_goal(), worker).result["answer"] == "at last"
    message_lists = [request.body["messages"] for request in model.requests]
    assert [len(message_list) for message_list in message_lists] == [2, 3, 4]
    assert all("empty" in message_list[-1]["content"] for message_list in message_lists[1:])


def test_a_model_that_only_replies_with_empty_turns_ends_at_its_turn_limit(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.answer = lambda request: Turn("")
    run = execute_run(submit_goal(maxSteps=4), worker)
    assert (run.status, run.error["details"]["causeCode"]) == ("failed", "BUDGET_EXHAUSTED")
    assert (len(model.requests), run.error["details"]["usage"]["turns"]) == (4, 4)


def test_a_megabyte_of_text_is_an_answer_and_its_events_are_marked_truncated(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("y" * 1_200_000, piece=20_000)]
    run = execute_run(submit_goal(), worker)
    assert run.status == "succeeded", run.error
    assert run.result["answer"].startswith("yyy")
    deltas = [row.data for row in RunEvent.objects.filter(run_id=run.id, type="chatDelta")]
    assert any(one.get("truncated") for one in deltas)
    assert sum(len(one["content"]) for one in deltas) < 1024 * 1024


def test_of_two_hundred_calls_the_first_are_made_and_the_others_are_rejected(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    calls = [Call("read_result", {"artifactId": "art_x"}, f"c{n}") for n in range(200)]
    model.script = [Turn("", calls, piece=99), complete()]
    run = execute_run(submit_goal(), worker)
    assert run.status == "succeeded", run.error
    assert run.total_steps == 2 + 64
    codes = [one["error"]["code"] for one in tool_results(model.requests[1])[-4:]]
    assert codes == ["SCHEMA_VALIDATION_FAILED"] * 4
    assert len(tool_results(model.requests[1])) == 200


def test_a_model_with_a_small_context_gets_shortened_results(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    project: Path,
    agent_settings: Any,
) -> None:
    agent_settings.LLM = replace(agent_settings.LLM, context_tokens=8000)
    for number in range(6):
        (project / f"{number}.txt").write_text("wörd " * 2500, "utf-8")
    reads = [Call("read_file", {"path": f"{n}.txt"}, f"c{n}") for n in range(6)]
    model.script = [*(Turn("", [read]) for read in reads), complete()]
    assert execute_run(submit_goal(tools=["read_file"]), worker).status == "succeeded"
    sizes = [
        len(json.dumps(request.body, ensure_ascii=False).encode()) for request in model.requests
    ]
    assert max(sizes) < 8000 * 3
    last = tool_results(model.requests[-1])
    assert (last[-1]["truncated"], "wörd" in last[-1]["result"]["preview"]) == (True, True)
    assert all("artifactId" in one for one in last)


def test_a_schema_reference_is_resolved_where_the_model_reads_it(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "description": "Of the house.",
        "properties": {"room": {"$ref": "#/$defs/Room"}, "$ref": {"enum": [{"$ref": "#/a"}]}},
        "$defs": {"Room": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Room"}}}},
    }
    model.script = [complete(output={"room": {"next": {}}})]
    assert execute_run(submit_goal(options={"outputSchema": schema}), worker).status == "succeeded"
    (tool,) = [
        one["function"]
        for one in model.requests[0].body["tools"]
        if one["function"]["name"] == "attempt_completion"
    ]
    output = tool["parameters"]["properties"]["output"]
    assert output["description"] == "Of the house."
    assert output["properties"] == {
        "room": {"$ref": "#/properties/output/$defs/Room"},
        "$ref": {"enum": [{"$ref": "#/a"}]},
    }
    inner = output["$defs"]["Room"]["properties"]["next"]
    assert inner == {"$ref": "#/properties/output/$defs/Room"}


def test_no_answer_is_repaired_when_the_tokens_are_used_up(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, agent_settings: Any
) -> None:
    agent_settings.AGENT_MAX_TOKENS = 50
    model.script = [complete(output={"x": 1}), complete(output={"count": 1})]
    run = execute_run(submit_goal(outputSchema=SCHEMA), worker)
    details = run.error["details"]
    assert (run.status, details["causeCode"]) == ("failed", "BUDGET_EXHAUSTED")
    assert details["verification"]["missingFields"] == ["count"]
    assert len(model.requests) == 1


@pytest.mark.parametrize("text", [" ", "\n\t"])
def test_a_blank_goal_is_rejected(submit_goal: SubmitGoal, text: str) -> None:
    with pytest.raises(InvalidInput, match="goal"):
        submit_goal(text)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://169.254.169.254/x"},
        {"type": "string", "pattern": "(a+)+$"},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"title": "x" * 65_537},
        {"$dynamicRef": "http://169.254.169.254/"},
        {"type": "nope"},
    ],
)
def test_a_hostile_schema_is_rejected_in_the_inputs_too(
    submit_goal: SubmitGoal, schema: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match="outputSchema"):
        submit_goal(outputSchema=schema)


def test_a_hostile_schema_that_an_older_version_stored_is_refused_before_the_model_is_asked(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    run_id = submit_goal(outputSchema=SCHEMA)
    inputs = Run.objects.get(id=run_id).inputs
    Run.objects.filter(id=run_id).update(inputs={**inputs, "outputSchema": doubled_references(40)})
    ended = execute_run(run_id, worker)
    assert (ended.status, ended.error["errorCode"]) == ("failed", "INVALID_PARAMETER")
    assert "expands to more than" in ended.error["message"]
    assert not model.requests


def test_a_turn_cut_at_the_token_limit_makes_none_of_its_calls(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("", [READ], stop="length"), complete()]
    run = execute_run(submit_goal(), worker)
    assert run.status == "succeeded", run.error
    assert "cut" in tool_results(model.requests[1])[0]["error"]["message"]
    assert not RunStep.objects.filter(run_id=run.id, name="read_file").exists()
