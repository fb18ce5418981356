"""The definition of a runner's tool: a name, a model of its arguments, and a coroutine function."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from inspect import get_annotations, getdoc
from typing import Any

from pydantic import BaseModel, ConfigDict

from runners.docker_runner.isolation.base import Isolation, RunnerFolder
from runners.tools.base import Effect

MAX_TIMEOUT_MS = 180_000  # S3 §7
OUTPUT_BYTES = 1024 * 1024


class Arguments(BaseModel):
    """Arguments of a tool: no unknown fields, no type conversion."""

    model_config = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True, slots=True)
class ToolEnvironment:
    """What a tool may use.

    Attributes:
        emit: send output to the caller while the tool executes.
    """

    folder: RunnerFolder
    isolation: Isolation
    emit: Callable[[str], None]


Function = Callable[[Any, ToolEnvironment], Coroutine[Any, Any, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class RunnerTool:
    """A tool that the runner offers."""

    name: str
    effect: Effect
    description: str
    arguments: type[Arguments]
    function: Function

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return self.arguments.model_json_schema()

    def published(self) -> dict[str, Any]:
        """Return the tool as GET /tools publishes it. A tool that may change anything has the
        effect external and high risk, because the gateway cannot undo it.
        """
        reads = self.effect == Effect.READ
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.schema(),
            "effect": "read" if reads else "external",
            "risk": "low" if reads else "high",
        }


def runner_tool(name: str, effect: Effect) -> Callable[[Function], RunnerTool]:
    """Turn a coroutine function `(args: Model, env: ToolEnvironment)` into a RunnerTool; its
    docstring is the description for callers.
    """

    def make(function: Function) -> RunnerTool:
        arguments = next(iter(get_annotations(function, eval_str=True).values()))
        return RunnerTool(name, effect, getdoc(function) or "", arguments, function)

    return make
