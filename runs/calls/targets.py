"""The target of a tool call: the folder in which it works, or the runner that performs it."""

from __future__ import annotations

from decisions.foundation.errors import TargetNotFound
from runners.gateway.request import RunnerTarget
from runners.models import ExecutionTarget, TargetKind
from runners.targets.runner_endpoint import runner_of
from runners.targets.targets import Caller
from runners.targets.workspaces import check_may_use, open_target
from runners.tools.registry import get_tool
from runners.workspace.workspace import ProjectWorkspace
from runs.calls.browser_policy import PairedBrowserTarget

CallTarget = ProjectWorkspace | RunnerTarget
StepTarget = CallTarget | PairedBrowserTarget  # a step may act in a paired browser, too


def open_call_target(
    caller: Caller,
    row: ExecutionTarget,
    tool_name: str,
    *,
    is_builtin: bool,
    developer: str | None = None,
    offered: tuple[str, ...] | None = None,
) -> CallTarget:
    """Return the folder or the runner of a target, for a call of this tool.

    Args:
        developer, offered: `developer_target` and `offered` of `runners.targets.open_workspace`.

    Raises:
        ToolFailed, Refused: The call cannot use the target.
    """
    tool = get_tool(tool_name) if is_builtin else None
    if row.kind != (TargetKind.DOCKER_RUNNER if tool is None else TargetKind.WORKSPACE):
        raise TargetNotFound(f"There is no target {row.id} for the tool {tool_name[:128]}.")
    if tool is None:
        return runner_of(row, caller)
    target = open_target(caller, row, developer_target=developer, offered=offered, tool=tool.name)
    check_may_use(tool, target, trust=caller.trust)
    return target
