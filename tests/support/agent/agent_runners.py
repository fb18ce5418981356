"""The tools that runners offer to the agent, as the model receives them, and the calls they get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runners.models import ExecutionTarget
from tests.support.agent.model_server import ModelRequest
from tests.support.runners.stub_runner import StubRunner

SCHEMA = {
    "type": "object",
    "properties": {"cmd": {"type": "string"}},
    "required": ["cmd"],
}
BASH = {"name": "bash.exec", "description": "Run a command line.", "inputSchema": SCHEMA}
MakeTarget = Callable[..., ExecutionTarget]


def offered_tools(request: ModelRequest) -> dict[str, dict[str, Any]]:
    """Return the tool definitions that a request sent to the model, by name."""
    definitions = [dict(definition["function"]) for definition in request.body["tools"]]
    return {str(definition["name"]): definition for definition in definitions}


def received_calls(runner: StubRunner) -> list[dict[str, Any]]:
    """Return the calls that a runner received."""
    return [dict(request.json["call"]) for request in runner.requests]
