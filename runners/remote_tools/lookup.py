"""Tools that our registry does not know: whatever a runner of the caller's offers by that name
(mechanisms 21).

What they do to the world is not known here, so one that was under way when it was lost is never
repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from pydantic import BaseModel, ConfigDict

from decisions.errors import TargetNotFound
from runners.gateway.request import TIMEOUT_MAX_MS
from runners.models import ExecutionTarget, TargetKind
from runners.targets.runner_endpoint import find_runner
from runners.targets.targets import Caller, visible_targets
from runners.tools.base import Effect, Tool, ToolContext
from runners.tools.registry import get_tool

KIND = str(TargetKind.DOCKER_RUNNER)


class AnyArguments(BaseModel):
    """An object: what belongs in it is the runner's affair."""

    model_config = ConfigDict(extra="allow")


def find_tool(name: str, *, target_id: str | None, remote: bool = False) -> Tool | None:
    """Return the tool of this name: ours, else that of the runner which the call names; with
    `elsewhere` that of the runner in any case.
    """
    own = None if remote else get_tool(name)
    if own is not None or target_id is None or not name.isprintable():
        return own
    return Tool(name, KIND, Effect.ONCE, TIMEOUT_MAX_MS, "", AnyArguments, _elsewhere)


def goes_elsewhere(caller: Caller, name: str, target_id: str | None) -> bool:
    """Tell whether a runner performs a call: the tool is none of ours, or the call names a runner
    of the caller's, whose tools may have the names of ours.
    """
    if get_tool(name) is None:
        return True
    return target_id is not None and _is_runner(visible_targets(caller), target_id)


def names_runner(name: str, target_id: str | None) -> bool:
    """Tell the same of a call with the name of one of our tools that was checked when it was handed
    in.
    """
    if target_id is None or get_tool(name) is None:
        return False
    return _is_runner(ExecutionTarget.objects.all(), target_id)


def runner_for(caller: Caller, name: str, target_id: str | None) -> ExecutionTarget | None:
    """Return the runner that a call of a tool goes to; None: the tool is ours, or there is no
    runner that could have it.

    Raises:
        TargetNotFound: The call names a target that is no runner of the caller's.
        PolicyDenied: It is disabled.
    """
    if not goes_elsewhere(caller, name, target_id):
        return None
    try:
        return find_runner(caller, target_id)
    except TargetNotFound:
        if target_id is not None:
            raise
        return None


def _is_runner(targets: QuerySet[ExecutionTarget], target_id: str) -> bool:
    return targets.filter(id=target_id, kind=TargetKind.DOCKER_RUNNER).exists()


async def _elsewhere(args: Any, ctx: ToolContext) -> Mapping[str, Any]:
    raise LookupError("what a runner performs has a runner in its context")
