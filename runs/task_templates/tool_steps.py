"""Steps that each call one tool; the calls are validated at submit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.foundation.errors import InvalidInput, Refused, TargetNotFound
from decisions.identity.principals import Principal
from runners.errors import ToolFailed
from runners.gateway.request import TIMEOUT_MAX_MS
from runners.invocation.arguments import check_args, scope_of
from runners.invocation.fallback import local_tool
from runners.remote_tools.lookup import KIND, find_tool, runner_for
from runners.targets.runner_endpoint import find_runner
from runners.targets.targets import Caller
from runners.targets.workspaces import check_may_use, open_workspace
from runners.tools.base import Tool
from runners.tools.registry import get_tool
from runs.task_templates.base import StepPlan, TaskTemplate

SEPARATE_TAB_TOOL = "read_page"  # the one browser tool that does not use the shared page


class ToolSteps(TaskTemplate):
    """A template whose steps each call the tool that their input names."""

    uses_browser = True
    shares_page = True
    step_timeout_ms = 10_000  # besides the tool call

    def uses_shared_page(self, step_input: Mapping[str, Any]) -> bool:
        """Return whether the step's tool works on the shared page."""
        tool = _local_tool(step_input)
        return tool is not None and tool.kind == "browser" and tool.name != SEPARATE_TAB_TOOL

    def step_limit_ms(self, step_input: Mapping[str, Any]) -> int:
        """Return a limit above those of the tool and the runner, so that these time out first and
        report what happened. A local tool may follow as the fallback of an unreachable runner.
        """
        local = get_tool(step_input["tool"])
        runner_ms = TIMEOUT_MAX_MS if _local_tool(step_input) is None else 0
        return self.step_timeout_ms + runner_ms + (0 if local is None else local.timeout_ms)

    def needs_browser(self, step_input: Mapping[str, Any]) -> bool:
        """Return whether the step's tool needs a browser; file tools and runners' tools do not."""
        tool = _local_tool(step_input)
        return tool is not None and tool.uses_browser


def _local_tool(step_input: Mapping[str, Any]) -> Tool | None:
    return None if step_input.get("elsewhere") else get_tool(step_input["tool"])


def runner_target(
    name: str, target_id: str | None, principal: Principal, *, where: str
) -> str | None:
    """Return the id of the runner that performs a call; for a local tool `target_id` as it is.

    Raises:
        InvalidInput: The target is not a runner of the caller.
        PolicyDenied: The runner is disabled.
    """
    try:
        runner = runner_for(Caller.of(principal), name, target_id)
    except TargetNotFound as missing:
        details = {"causeCode": missing.code, "tool": name}
        raise InvalidInput(f"{where}: {missing.message}", details=details) from None
    return target_id if runner is None else runner.id


def find_step_tool(
    name: str, *, where: str, target_id: str | None = None, remote: bool = False
) -> Tool:
    """Return the tool of this name: the local one, or with `remote` the runner's.

    Raises:
        InvalidInput: There is no such tool; the message begins with `where`.
    """
    tool = find_tool(name, target_id=target_id, remote=remote)
    if tool is None or tool.agent_only:
        raise InvalidInput(f"{where}: there is no tool {name[:64]} here.", details={"tool": name})
    return tool


def checked_step_args(tool: Tool, args: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Return a step's arguments in the form that its tool accepts.

    Raises:
        InvalidInput: They do not fit the tool's schema.
    """
    if tool.kind == KIND:
        return dict(args)
    try:
        return check_args(tool, args)
    except (InvalidInput, ToolFailed) as error:
        raise _refusal(error, tool, where) from None


def pinned_target(
    tool: Tool, target_id: str | None, principal: Principal, *, where: str
) -> str | None:
    """Return the workspace or runner of a step, fixed at submit so that every worker uses the same
    one; None for other tools.

    Raises:
        InvalidInput: There is no such target, or the caller may not use the tool there.
        Forbidden: The caller lacks the tool's scope.
    """
    principal.require(scope_of(tool))
    if tool.kind == KIND:
        return target_id
    if tool.kind != "workspace":
        if target_id is not None:
            raise InvalidInput(f"{where}: {tool.name} takes no target; omit it.")
        return None
    try:
        workspace = open_workspace(Caller.of(principal), target_id, tool=tool.name)
        check_may_use(tool, workspace, trust=principal.trust)
    except ToolFailed as failed:
        raise _refusal(failed, tool, where) from None
    return workspace.target_id


def fallback_target(
    name: str, target_id: str | None, named: str | None, principal: Principal, *, where: str
) -> dict[str, str]:
    """Return {fallbackTargetId}: the workspace in which the local tool of the same name performs a
    runner's call if the runner is unreachable; {} if the call has no such fallback.

    Args:
        named: the workspace that the caller chose; None for the caller's default one.

    Raises:
        InvalidInput: The local tool cannot work in the chosen workspace.
        Forbidden: The caller lacks the local tool's scope.
    """
    tool, runner = local_tool(name), find_runner(Caller.of(principal), target_id)
    if tool is None or runner.config.get("onUnreachable") != "fallback_local":
        return {}
    principal.require(scope_of(tool))
    try:
        workspace = open_workspace(Caller.of(principal), named, tool=name)
        check_may_use(tool, workspace, trust=principal.trust)
    except ToolFailed as failed:
        if named is None:
            return {}
        raise _refusal(failed, tool, where) from None
    return {"fallbackTargetId": workspace.target_id}


def tool_step(name: str, tool: Tool, args: Mapping[str, Any], target_id: str | None) -> StepPlan:
    """Return the step that calls a tool."""
    target = {"targetId": target_id} if target_id is not None else {}
    return StepPlan(name, {"tool": tool.name, "args": dict(args), **target}, tool.effect)


def _refusal(error: Refused | ToolFailed, tool: Tool, where: str) -> InvalidInput:
    cause = {"causeCode": error.code} if isinstance(error, ToolFailed) else {}
    details = {"tool": tool.name, **cause, **error.details}
    return InvalidInput(f"{where}, {tool.name}: {error.message}", details=details)
