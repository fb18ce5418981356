"""Steps that are calls of tools: checked when the run is submitted, each done by its tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.errors import InvalidInput, Refused
from decisions.principals import Principal
from runners.arguments import check_args, scope_of
from runners.base import Tool
from runners.errors import ToolFailed
from runners.registry import get_offered_tool, get_tool
from runners.targets import Caller
from runners.workspaces import check_may_use, open_workspace
from runs.task_templates.registry import StepPlan, TaskTemplate

OWN_TAB = "read_page"  # the one tool of a browser that leaves nothing on the page that steps share


class ToolSteps(TaskTemplate):
    """A template each of whose steps calls one tool, named by the step's input."""

    uses_browser = True
    shares_page = True
    step_timeout_ms = 180_000

    def on_page(self, step_input: Mapping[str, Any]) -> bool:
        """Tell whether a step works on the page that steps share."""
        tool = get_tool(step_input["tool"])
        return tool is not None and tool.kind == "browser" and tool.name != OWN_TAB

    def needs_browser(self, step_input: Mapping[str, Any]) -> bool:
        """Tell whether a step's tool needs one: those that read and write files do not."""
        tool = get_tool(step_input["tool"])
        return tool is None or tool.uses_browser


def find_step_tool(name: str, *, where: str) -> Tool:
    """Return a tool by its name.

    Raises:
        InvalidInput: There is none; the message begins with `where`.
    """
    tool = get_offered_tool(name)
    if tool is None:
        raise InvalidInput(f"{where}: there is no tool {name[:64]} here.", details={"tool": name})
    return tool


def checked_step_args(tool: Tool, args: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Return a step's arguments as its tool takes them.

    Raises:
        InvalidInput: They are not as the tool's schema says.
    """
    try:
        return check_args(tool, args)
    except (InvalidInput, ToolFailed) as wrong:
        raise _refusal(wrong, tool, where) from None


def pinned_target(
    tool: Tool, target_id: str | None, principal: Principal, *, where: str
) -> str | None:
    """Return the target that a step of a workspace tool works on, so that it stays the same one
    whoever carries the run on; None for other tools.

    Raises:
        InvalidInput: There is none, or the tool is not for this caller there.
        Forbidden: The caller lacks the tool's scope.
    """
    principal.require(scope_of(tool))
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


def tool_step(name: str, tool: Tool, args: Mapping[str, Any], target_id: str | None) -> StepPlan:
    """Return the step that calls a tool."""
    where = {"targetId": target_id} if target_id is not None else {}
    return StepPlan(name, {"tool": tool.name, "args": dict(args), **where}, tool.effect)


def _refusal(wrong: Refused | ToolFailed, tool: Tool, where: str) -> InvalidInput:
    cause = {"causeCode": wrong.code} if isinstance(wrong, ToolFailed) else {}
    details = {"tool": tool.name, **cause, **wrong.details}
    return InvalidInput(f"{where}, {tool.name}: {wrong.message}", details=details)
