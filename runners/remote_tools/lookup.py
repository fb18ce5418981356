"""Look-up of tools that are not in the registry but offered by one of the caller's runners.

Their effect is unknown, so a call that was in flight when its worker was lost is never repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from pydantic import BaseModel, ConfigDict

from decisions.foundation.errors import TargetNotFound
from runners.gateway.request import TIMEOUT_MAX_MS
from runners.models import ExecutionTarget, TargetKind
from runners.targets.runner_endpoint import find_runner
from runners.targets.targets import Caller, visible_targets
from runners.tools.base import Effect, Tool, ToolContext
from runners.tools.registry import get_tool

KIND = str(TargetKind.DOCKER_RUNNER)


class AnyArguments(BaseModel):
    """Any object; the runner validates it."""

    model_config = ConfigDict(extra="allow")


def find_tool(name: str, *, target_id: str | None, remote: bool) -> Tool | None:
    """Return the tool of this name: the local one, else that of the named runner. With `remote`,
    the runner's tool in any case.
    """
    local = None if remote else get_tool(name)
    if local is not None or target_id is None or not name.isprintable():
        return local
    return Tool(name, KIND, Effect.ONCE, TIMEOUT_MAX_MS, "", AnyArguments, _execute_on_runner)


def is_remote_call(caller: Caller, name: str, target_id: str | None) -> bool:
    """Return whether a runner executes a call: no local tool has that name, or the call names
    one of the caller's runners, whose tools may have names of local tools.
    """
    if get_tool(name) is None:
        return True
    return target_id is not None and _is_runner(visible_targets(caller), target_id)


def is_runner_named(name: str, target_id: str | None) -> bool:
    """Return whether a call with the name of a local tool names a runner; the call was checked when
    it was submitted.
    """
    if target_id is None or get_tool(name) is None:
        return False
    return _is_runner(ExecutionTarget.objects.all(), target_id)


def runner_for(caller: Caller, name: str, target_id: str | None) -> ExecutionTarget | None:
    """Return the runner of a call; None: a local tool executes it, or no runner offers it.

    Raises:
        TargetNotFound: The call names a target that is not a runner of the caller.
        PolicyDenied: It is disabled.
    """
    if not is_remote_call(caller, name, target_id):
        return None
    try:
        return find_runner(caller, target_id)
    except TargetNotFound:
        if target_id is not None:
            raise
        return None


def _is_runner(targets: QuerySet[ExecutionTarget], target_id: str) -> bool:
    return targets.filter(id=target_id, kind=TargetKind.DOCKER_RUNNER).exists()


async def _execute_on_runner(args: Any, ctx: ToolContext) -> Mapping[str, Any]:
    raise LookupError("calls of a runner's tool are sent to the runner")
