"""The tool `attempt_completion`: let the host show the user the result of a task (S4 §3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.host_tools import ACKNOWLEDGEMENT, text_request


class AttemptCompletion(Closed):
    """The result."""

    result: str = Field(min_length=1)


@tool(
    "attempt_completion",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=5_000,
    request=text_request("attempt_completion", "result"),
    response=ACKNOWLEDGEMENT,
)
async def attempt_completion(args: AttemptCompletion, ctx: ToolContext) -> Mapping[str, Any]:
    """Report that the task is done, with its result as text for the user; the host shows it.

    Returns {ack: true}. Nothing is changed or checked: call it when the work is complete.
    """
    return {"ack": True}
