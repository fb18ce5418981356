"""Steps that are calls of tools: checked when the run is submitted, each done by its tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.errors import InvalidInput, Refused, TargetNotFound
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

SEPARATE_TAB_TOOL = (
    "read_page"  # the one tool of a browser that leaves nothing on the page that steps share
)


class ToolSteps(TaskTemplate):
    """A template each of whose steps calls one tool, named by the step's input."""

    uses_browser = True
    shares_page = True
    step_timeout_ms = 10_000  # beside its calls

    def uses_shared_page(self, step_input: Mapping[str, Any]) -> bool:
        """Tell whether a step works on the page that steps share."""
        tool = _own_tool(step_input)
        return tool is not None and tool.kind == "browser" and tool.name != SEPARATE_TAB_TOOL

    def step_limit_ms(self, step_input: Mapping[str, Any]) -> int:
        """Return more than the longest time of whatever may perform the step's call: that which
        ends a call itself can say what came of it. Ours may follow a runner that is not reached.
        """
        ours = get_tool(step_input["tool"])
        runners_ms = TIMEOUT_MAX_MS if _own_tool(step_input) is None else 0
        return self.step_timeout_ms + runners_ms + (0 if ours is None else ours.timeout_ms)

    def needs_browser(self, step_input: Mapping[str, Any]) -> bool:
        """Tell whether a step's tool needs one: those that read and write files do not, nor those
        of runners.
        """
        tool = _own_tool(step_input)
        return tool is not None and tool.uses_browser


def _own_tool(step_input: Mapping[str, Any]) -> Tool | None:
    return None if step_input.get("elsewhere") else get_tool(step_input["tool"])


def runner_target(
    name: str, target_id: str | None, principal: Principal, *, where: str
) -> str | None:
    """Return the target that a call of a tool names; of a tool that is not ours, that of the runner
    which performs it.

    Raises:
        InvalidInput: It is no runner of the caller's.
        PolicyDenied: It is disabled.
    """
    try:
        runner = runner_for(Caller.of(principal), name, target_id)
    except TargetNotFound as missing:
        told = {"causeCode": missing.code, "tool": name}
        raise InvalidInput(f"{where}: {missing.message}", details=told) from None
    return target_id if runner is None else runner.id


def find_step_tool(
    name: str, *, where: str, target_id: str | None = None, remote: bool = False
) -> Tool:
    """Return a tool by its name: ours, or that of the runner which the call goes to.

    Raises:
        InvalidInput: There is none; the message begins with `where`.
    """
    tool = find_tool(name, target_id=target_id, remote=remote)
    if tool is None or tool.agent_only:
        raise InvalidInput(f"{where}: there is no tool {name[:64]} here.", details={"tool": name})
    return tool


def checked_step_args(tool: Tool, args: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Return a step's arguments as its tool takes them.

    Raises:
        InvalidInput: They are not as the tool's schema says.
    """
    if tool.kind == KIND:
        return dict(args)
    try:
        return check_args(tool, args)
    except (InvalidInput, ToolFailed) as wrong:
        raise _refusal(wrong, tool, where) from None


def pinned_target(
    tool: Tool, target_id: str | None, principal: Principal, *, where: str
) -> str | None:
    """Return the target that a step of a workspace or of a runner works on, so that it stays the
    same one whoever carries the run on; None for other tools.

    Raises:
        InvalidInput: There is none, or the tool is not for this caller there.
        Forbidden: The caller lacks the tool's scope.
    """
    principal.require(scope_of(tool))
    if tool.kind == KIND:
        return target_id
    if tool.kind != "workspace":
        if target_id is not None:
            raise InvalidInput(f"{where}: {tool.name} runs on no target that can be named.")
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
    """Return {fallbackTargetId} of a call that a runner performs under the name of one of our
    tools, where its target falls back and ours can: the folder that is named, else the caller's
    default.

    Raises:
        InvalidInput: A folder is named that our tool cannot work in.
        Forbidden: The caller lacks our tool's scope.
    """
    own, runner = local_tool(name), find_runner(Caller.of(principal), target_id)
    if own is None or runner.config.get("onUnreachable") != "fallback_local":
        return {}
    principal.require(scope_of(own))
    try:
        folder = open_workspace(Caller.of(principal), named, tool=name)
        check_may_use(own, folder, trust=principal.trust)
    except ToolFailed as failed:
        if named is None:
            return {}
        raise _refusal(failed, own, where) from None
    return {"fallbackTargetId": folder.target_id}


def tool_step(name: str, tool: Tool, args: Mapping[str, Any], target_id: str | None) -> StepPlan:
    """Return the step that calls a tool."""
    where = {"targetId": target_id} if target_id is not None else {}
    return StepPlan(name, {"tool": tool.name, "args": dict(args), **where}, tool.effect)


def _refusal(wrong: Refused | ToolFailed, tool: Tool, where: str) -> InvalidInput:
    cause = {"causeCode": wrong.code} if isinstance(wrong, ToolFailed) else {}
    details = {"tool": tool.name, **cause, **wrong.details}
    return InvalidInput(f"{where}, {tool.name}: {wrong.message}", details=details)
