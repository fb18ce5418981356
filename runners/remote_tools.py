"""Tools that our registry does not know: whatever a runner of the caller's offers by that name
(mechanisms 21).

What they do to the world is not known here, so one that was under way when it was lost is never
repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from decisions.errors import TargetNotFound
from runners.base import Effect, Tool, ToolContext
from runners.gateway.wanted import TIMEOUT_MAX_MS
from runners.models import ExecutionTarget, TargetKind
from runners.registry import get_tool
from runners.remote import find_runner
from runners.targets import Caller

KIND = str(TargetKind.DOCKER_RUNNER)


class AnyArguments(BaseModel):
    """An object: what belongs in it is the runner's affair."""

    model_config = ConfigDict(extra="allow")


def find_tool(name: str, *, target_id: str | None) -> Tool | None:
    """Return the tool of this name: ours, else that of the runner which the call names."""
    own = get_tool(name)
    if own is not None or target_id is None or not name.isprintable():
        return own
    return Tool(name, KIND, Effect.ONCE, TIMEOUT_MAX_MS, "", AnyArguments, _elsewhere)


def runner_for(caller: Caller, name: str, target_id: str | None) -> ExecutionTarget | None:
    """Return the runner that a call of a tool goes to; None: the tool is ours, or there is no
    runner that could have it.

    Raises:
        TargetNotFound: The call names a target that is no runner of the caller's.
        PolicyDenied: It is disabled.
    """
    if get_tool(name) is not None:
        return None
    try:
        return find_runner(caller, target_id)
    except TargetNotFound:
        if target_id is not None:
            raise
        return None


async def _elsewhere(args: Any, ctx: ToolContext) -> Mapping[str, Any]:
    raise LookupError("what a runner performs has a runner in its context")
