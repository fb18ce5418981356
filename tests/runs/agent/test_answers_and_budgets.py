"""How runs of the agent end: answers in the requested schema, and budgets."""

from __future__ import annotations

from typing import Any

import pytest

from decisions.errors import InvalidInput
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

pytest_plugins = [
    "tests.support.workspace.workspace_fixtures",
    "tests.support.agent.model_fixtures",
    "tests.support.agent.agent_fixtures",
]


def test_an_answer_of_another_schema_is_repaired_once(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [complete("x", output={"count": "many"}), complete("y", output={"count": 3})]
    run_id = submit_goal(options={"outputSchema": SCHEMA})
    run = execute_run(run_id, worker)
    assert (run.status, run.result["output"]) == ("succeeded", {"count": 3})
    assert model.requests[1].tools == ["attempt_completion"]
    assert "count" in tool_results(model.requests[1])[0]["error"]["message"]
    assert [one["status"] for one in events(run_id, "structuredOutput")] == ["error", "ok"]


def test_an_answer_that_never_fits_the_schema_fails_with_the_reason(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    model.script = [complete("x", output={}), Turn('{"count": "three"}')]
    run = execute_run(submit_goal(outputSchema=SCHEMA), worker)
    assert (run.status, run.error["errorCode"]) == ("failed", "EXECUTION_ERROR")
    details = run.error["details"]
    assert details["causeCode"] == "SCHEMA_VALIDATION_FAILED"
    assert details["verification"]["typeMismatches"]
    assert details["usage"]["turns"] == 2


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
    assert model.requests[1].tools == ["attempt_completion"]


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
