"""The target of a tool call: the folder in which it works, the runner that performs it, or a
paired browser.
"""

from __future__ import annotations

from dataclasses import dataclass

from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.errors import PolicyDenied, Refused, TargetNotFound
from runners.actions.catalogue import ACTIONS
from runners.errors import ToolFailed
from runners.gateway.request import RunnerTarget
from runners.models import ExecutionTarget, PluginClient, TargetKind
from runners.paired_browser.choice import SELECTED, find_paired_browser, is_paired_browser
from runners.targets.runner_endpoint import find_runner, runner_of
from runners.targets.targets import Caller
from runners.targets.workspaces import check_may_use, find_target, open_target
from runners.tools.registry import get_tool
from runners.workspace.workspace import ProjectWorkspace
from runs.calls.request import caller_of
from runs.models import Run, Task


@dataclass(frozen=True, slots=True)
class PairedBrowserTarget:
    """The target of a call in a paired browser."""

    client: PluginClient
    task_title: str


CallTarget = ProjectWorkspace | RunnerTarget
StepTarget = CallTarget | PairedBrowserTarget
FoundTarget = ExecutionTarget | PairedBrowserTarget | ToolFailed | Refused | None


def browser_of_call(run: Run, tool: str) -> str | None:
    """Return the paired browser in which a run performs this tool; None: not in one."""
    selected = run.inputs.get(SELECTED)
    return str(selected) if selected is not None and tool in ACTIONS else None


def needs_target(request: ToolCallRequest) -> bool:
    """Return whether a call works in a folder, on a runner or in a paired browser."""
    tool = get_tool(request.tool) if request.is_builtin else None
    return tool is None or tool.kind == "workspace" or is_paired_browser(request.target_id)


def find_call_target(run: Run, request: ToolCallRequest) -> FoundTarget:
    """Return the target of a step's call; None where it needs none, and an error where there is
    none.
    """
    if not needs_target(request):
        return None
    caller = caller_of(run)
    try:
        if request.is_builtin and is_paired_browser(request.target_id):
            client = find_paired_browser(caller, request.target_id or "")
            title = Task.objects.filter(id=run.task_id).values_list("title", flat=True).first()
            return PairedBrowserTarget(client, title or "")
        find = find_target if request.is_builtin else find_runner
        return find(caller, request.target_id)
    except (PolicyDenied, TargetNotFound, ToolFailed) as failed:
        return failed


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
