"""The tool `attempt_completion`: let the host show the user the result of a task (S4 §3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

REQUEST: dict[str, Any] = {
    "$id": "attempt_completion.request",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {"result": {"type": "string", "minLength": 1}},
    "required": ["result"],
}
RESPONSE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"ack": {"const": True}},
    "required": ["ack"],
}


class AttemptCompletion(Closed):
    """The result."""

    result: str = Field(min_length=1)


@tool(
    "attempt_completion",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=5_000,
    request=REQUEST,
    response=RESPONSE,
)
async def attempt_completion(args: AttemptCompletion, ctx: ToolContext) -> Mapping[str, Any]:
    """Report that the task is done, with its result as text for the user; the host shows it.

    Returns {ack: true}. Nothing is changed or checked: call it when the work is complete.
    """
    return {"ack": True}
