"""Goals that tests of the agent submit, and functions that read the results of their runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from runs.models import Run, RunEvent
from runs.worker.worker import WorkerProcess
from tests.support.agent.model_server import ModelRequest
from tests.support.agent.model_turns import Call

SubmitGoal = Callable[..., str]
READ = Call("read_file", {"path": "game/scene/start.txt"}, "r1")
SCHEMA = {
    "type": "object",
    "required": ["count"],
    "additionalProperties": False,
    "properties": {"count": {"type": "integer"}},
}


def execute_run(run_id: str, worker: WorkerProcess) -> Run:
    """Let the worker run until it finds no more work, and return the run."""
    worker.work()
    return Run.objects.get(id=run_id)


def events(run_id: str, type_: str) -> list[dict[str, Any]]:
    """Return the data of a run's events of a type."""
    rows = RunEvent.objects.filter(run_id=run_id, type=type_).order_by("seq")
    return [dict(row.data) for row in rows]


def observations(request: ModelRequest) -> list[dict[str, Any]]:
    """Return the observations that a request ends with, `text` with its fence lines."""
    content = request.body["messages"][-1]["content"]
    whole = content if isinstance(content, str) else content[-1]["text"]
    found = []
    for part in whole.split("The newest observation of this tab: ")[1:]:
        fields, _, text = part.partition("\n")
        found.append({**json.loads(fields), "text": text.strip()})
    return found


def page_field(result: dict[str, Any], name: str) -> Any:
    """Return a field of a result that a page may have written: it is between fence lines."""
    (line,) = re.findall(rf"^{name}: (.*)$", result["untrusted"], re.MULTILINE)
    return json.loads(line) if line[:1] in "[{" else line


def tool_results(request: ModelRequest) -> list[dict[str, Any]]:
    """Return the tool results that a request sent to the model."""
    messages = [message for message in request.body["messages"] if message["role"] == "tool"]
    return [json.loads(message["content"]) for message in messages]
