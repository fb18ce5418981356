"""Test the rows of bad input of a model's stream: a scripted model outputs each row to the agent
loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.contract.bad_inputs import Row, rows
from tests.support.agent.agent_goals import tool_results
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete, write_call
from tests.support.audit.secret_search import every_file, every_row, find_secret

KEY = "sk-0123456789abcdef"
WRITE = write_call("a.txt", "x\n")
READ = Call("read_file", {"path": "game/scene/start.txt"}, "r")
ROWS = rows("llm-stream")
# The project's own rows hold what the shared ones do, and more.
CASES = [
    pytest.param(row, marks=pytest.mark.slow) if row.source.startswith("shared") else row
    for row in ROWS
]
# What the model outputs for a row without a script: its turns, and the inputs of the run.
OUTPUTS: dict[str, tuple[list[Turn], dict[str, Any]]] = {
    "mid tool_call": ([Turn("", [WRITE], cut_at=700)] * 2, {}),
    "duplicate": ([Turn("", [WRITE, WRITE]), complete()], {}),
    "endless": ([Turn("", [READ], pause_s=0.02)] * 1000, {"options": {"timeoutMs": 2000}}),
    "never": ([Turn("Words.", stall_at=0)] * 2, {}),
    "sk-XXXX": ([complete(f"The key is {KEY}.")], {}),
}


def output_of(row: Row) -> tuple[list[Turn], dict[str, Any]]:
    if (call := row.input.get("tool_call")) is not None:
        return [Turn("", [Call(call["name"], call.get("arguments", {}), "c")]), complete()], {}
    (found,) = [output for text, output in OUTPUTS.items() if text in str(row.input)]
    return found


def code_of(run: Run, model: ModelServer) -> str:
    """Return the error code that ended the run, or that the model got for its last call."""
    if run.error:
        return str(run.error["details"].get("causeCode", run.error["errorCode"]))
    results = tool_results(model.requests[-1])
    return str(results[-1]["error"]["code"]) if results else "OK"


@pytest.mark.parametrize("row", CASES, ids=str)
def test_a_bad_model_output_gets_its_code_and_does_no_harm(
    row: Row,
    model: ModelServer,
    submit_goal: Callable[..., str],
    worker: WorkerProcess,
    project: Path,
    agent_settings: Any,
) -> None:
    policy = replace(agent_settings.WORKSPACE_POLICY, write_requires_diff=False)
    agent_settings.WORKSPACE_POLICY = policy
    agent_settings.LLM = replace(agent_settings.LLM, api_key=KEY, timeout_ms=3000)
    script, arguments = output_of(row)
    model.script = list(script)
    run_id = submit_goal(**arguments)
    worker.work()
    run = Run.objects.get(id=run_id)
    assert code_of(run, model) == row.expect_code
    is_made_once = "duplicate" in str(row.input)
    assert (project / "a.txt").exists() == is_made_once
    assert not is_made_once or (project / "a.txt").read_text() == "x\n"
    assert find_secret(KEY, {"a row": every_row(), "a file": every_file()}) == []
    model.script = [complete("Well.")]
    next_id = submit_goal()
    worker.work()
    assert Run.objects.get(id=next_id).status == "succeeded"
