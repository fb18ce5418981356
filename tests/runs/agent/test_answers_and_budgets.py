"""How runs of the agent end: answers in the requested schema, and budgets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.foreign_schema import ForeignSchema
from runs.agent.answer_check import verify_output
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import (
    READ,
    SCHEMA,
    SubmitGoal,
    events,
    execute_run,
    tool_results,
)
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Turn, complete

ONLY_COMPLETE = {"type": "function", "function": {"name": "attempt_completion"}}


def test_an_answer_of_another_schema_is_repaired_once(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [complete("x", output={"count": "many"}), complete("y", output={"count": 3})]
    run_id = submit_goal(options={"outputSchema": SCHEMA})
    run = execute_run(run_id, worker)
    assert (run.status, run.result["output"]) == ("succeeded", {"count": 3})
    assert model.requests[1].tools == model.requests[0].tools
    message = tool_results(model.requests[1])[0]["error"]["message"]
    assert 'count: type: it is not of type "integer" ("many")' in message
    assert [one["status"] for one in events(run_id, "structuredOutput")] == ["error", "ok"]


def test_an_answer_that_never_fits_the_schema_fails_with_the_reason(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [complete("x", output={}), Turn('{"count": "three"}'), complete("never")]
    run = execute_run(submit_goal(outputSchema=SCHEMA), worker)
    assert (run.status, run.error["errorCode"]) == ("failed", "EXECUTION_ERROR")
    details = run.error["details"]
    assert details["causeCode"] == "SCHEMA_VALIDATION_FAILED"
    assert details["verification"]["typeMismatches"]
    assert details["usage"]["turns"] == 2


def test_what_an_answer_misses_can_be_fetched_before_the_second_answer(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    reads = [Turn("", [replace(READ, id=f"r{n}")]) for n in range(3)]
    model.script = [complete("x", output={}), *reads, complete("y", output={"count": 3})]
    run = execute_run(submit_goal(outputSchema=SCHEMA), worker)
    assert (run.status, run.result["output"]) == ("succeeded", {"count": 3})
    assert [result["ok"] for result in tool_results(model.requests[-1])] == [False, *[True] * 3]
    choices = [request.body.get("tool_choice") for request in model.requests]
    assert choices == [None] * 4 + [ONLY_COMPLETE]


def test_a_second_answer_that_never_comes_fails_with_the_reason(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [complete("x", output={})]
    model.script += [Turn("", [replace(READ, id=f"r{n}")]) for n in range(9)]
    run = execute_run(submit_goal(outputSchema=SCHEMA), worker)
    details = run.error["details"]
    assert details["causeCode"] == "SCHEMA_VALIDATION_FAILED"
    assert details["verification"]["missingFields"] == ["count"]
    assert len(model.requests) == 5  # the answer, three turns with tools, the second try


def test_an_answer_of_the_last_turn_is_repaired_once(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [complete("x", output={}), complete("y", output={"count": 3})]
    run = execute_run(submit_goal(outputSchema=SCHEMA, maxSteps=1), worker)
    assert (run.status, run.result["output"]) == ("succeeded", {"count": 3})
    assert [request.body["tool_choice"] for request in model.requests] == [ONLY_COMPLETE] * 2


def test_a_mismatch_names_place_keyword_and_reason_before_the_value() -> None:
    names = {"type": "array", "minItems": 60}
    output = {"names": [f"Item number {n}" for n in range(58)]}
    schema = ForeignSchema({"properties": {"names": names}})
    (mismatch,) = verify_output(output, schema)["typeMismatches"]
    assert mismatch.startswith('names: minItems: it has less than 60 items (["Item number 0"')
    assert mismatch.endswith("…, 58 items)")
    assert len(mismatch) < 150


def test_text_that_is_json_fits_a_schema(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn('```json\n{"count": 3}\n```')]
    assert execute_run(submit_goal(outputSchema=SCHEMA), worker).result["output"] == {"count": 3}


def test_two_output_schemas_are_rejected(submit_goal: SubmitGoal) -> None:
    with pytest.raises(InvalidInput, match="outputSchema"):
        submit_goal(options={"outputSchema": SCHEMA}, outputSchema={"type": "object"})


def test_the_last_turn_can_only_complete(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("", [READ]), complete("This far.")]
    run = execute_run(submit_goal(maxSteps=2), worker)
    assert (run.status, run.result["answer"]) == ("partial_success", "This far.")
    assert model.requests[1].tools == model.requests[0].tools
    assert [request.body.get("tool_choice") for request in model.requests] == [None, ONLY_COMPLETE]


def test_a_call_of_another_tool_in_the_last_turn_is_not_made(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [Turn("", [READ])]
    run = execute_run(submit_goal(maxSteps=1), worker)
    assert run.error["details"]["causeCode"] == "BUDGET_EXHAUSTED"
    assert run.total_steps == 1


@pytest.mark.parametrize("limit", [{"AGENT_MAX_TOKENS": 500}, {"AGENT_MAX_COST_USD": 0.0005}])
def test_an_exhausted_budget_ends_a_run_cleanly(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    agent_settings: Any,
    limit: dict[str, Any],
) -> None:
    for name, maximum in limit.items():
        setattr(agent_settings, name, maximum)
    model.script = [Turn("So far", [READ], tokens=(490, 20)), complete()]
    run = execute_run(submit_goal(), worker)
    assert (run.status, run.error["details"]["causeCode"]) == ("failed", "BUDGET_EXHAUSTED")
    assert run.error["details"]["usage"]["inputTokens"] == 490
    assert len(model.requests) == 1
