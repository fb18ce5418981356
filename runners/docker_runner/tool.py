"""What a tool of the runner is: a name, a closed model of its arguments, and a coroutine."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from inspect import get_annotations, getdoc
from typing import Any

from pydantic import BaseModel, ConfigDict

from runners.docker_runner.isolation.base import Isolation, Place
from runners.tools.base import Effect

MAX_TIMEOUT_MS = 180_000  # S3 §7
OUTPUT_BYTES = 1024 * 1024


class Arguments(BaseModel):
    """Arguments of a tool: nothing unknown, nothing turned into another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True, slots=True)
class Hands:
    """What a tool may use.

    Attributes:
        say: tell the caller something at once, while the tool works.
    """

    place: Place
    isolation: Isolation
    say: Callable[[str], None]


Function = Callable[[Any, Hands], Coroutine[Any, Any, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool that the runner offers."""

    name: str
    effect: Effect
    description: str
    arguments: type[Arguments]
    function: Function

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its arguments."""
        return self.arguments.model_json_schema()

    def published(self) -> dict[str, Any]:
        """Return what the runner tells of it. What may change anything is told as external and of
        high risk: the gateway cannot undo it.
        """
        reads = self.effect == Effect.READ
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.schema(),
            "effect": "read" if reads else "external",
            "risk": "low" if reads else "high",
        }


def offered(name: str, effect: Effect) -> Callable[[Function], Offered]:
    """Turn a coroutine function `(args: Model, hands: Hands)` into a tool that can be offered; its
    docstring is what callers read.
    """

    def make(function: Function) -> Offered:
        arguments = next(iter(get_annotations(function, eval_str=True).values()))
        return Offered(name, effect, getdoc(function) or "", arguments, function)

    return make


def seconds_until(deadline: float) -> float:
    """Return the seconds until a `time.monotonic()` value, never below 0."""
    return max(0.0, deadline - time.monotonic())
