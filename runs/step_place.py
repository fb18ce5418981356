"""Where a step's call of a tool works: in a folder, or on a runner; told to the audit log first."""

from __future__ import annotations

from decisions.audit import Deed, record
from decisions.deeds import ToolUse
from decisions.errors import PolicyDenied, Refused, TargetNotFound
from runners.base import Tool
from runners.errors import ToolFailed
from runners.gateway.wanted import RunnerTarget
from runners.remote import find_runner, runner_of
from runners.targets import Caller
from runners.trust import TrustLevel
from runners.workspace.place import Workspace
from runners.workspaces import check_may_use, open_workspace
from runs.claims import LeaseLost
from runs.made_calls import MadeCall, begun
from runs.models import DEVELOPER_TARGET, Run
from runs.open_calls import open_call_of_run


def begin_call(
    run: Run, step: int, tool: Tool | None, use: ToolUse, call: MadeCall, *, opened: list[str]
) -> Workspace | RunnerTarget | ToolFailed | Refused:
    """Return the folder that a call of a workspace tool works in, or the runner that performs a
    call (`tool` is None), or why there is none for it; on the run's database thread. The call is
    told first, and named in `opened`; a target that is disabled is a denial, and told as one.

    Raises:
        LeaseLost: The run is not ours any more; the call is not to be made.
    """
    trust = trust_of(run)
    caller = Caller(run.principal_id, run.tenant_id, run.workspace_id, trust)
    place: Workspace | RunnerTarget
    try:
        if tool is None:
            place = runner_of(find_runner(caller, use.target_id), caller)
        else:
            chosen = run.options.get(DEVELOPER_TARGET)
            place = open_workspace(caller, use.target_id, developer_target=chosen, tool=tool.name)
            check_may_use(tool, place, trust=trust)
    except PolicyDenied as denied:
        _record_denial(run, step, use, denied)
        return denied
    except (ToolFailed, TargetNotFound) as failed:
        return failed
    if not open_call_of_run(call.call_id, begun(run, step, call), run):
        raise LeaseLost(run.id)
    opened.append(call.call_id)
    return place


def record_fallback(run: Run, step: int, use: ToolUse, reason: str) -> None:
    """Tell that a call which did not reach its runner is made here instead; commits."""
    told = {"tool": use.tool[:128], "step": step, "targetId": use.target_id, "reason": reason}
    place = run.tenant_id, run.workspace_id
    record(Deed("tool.fell_back", run.principal_id, "run", run.id, *place, told))


def trust_of(run: Run) -> TrustLevel:
    """Return the trust level of a run's caller."""
    return "local" if run.trust == "local" else "remote"


def _record_denial(run: Run, step: int, use: ToolUse, denied: PolicyDenied) -> None:
    told = {"tool": use.tool[:128], "step": step, "rule": denied.message[:200]}
    told |= {"argsDigest": use.digest, **({"targetId": use.target_id} if use.target_id else {})}
    place = run.tenant_id, run.workspace_id
    record(Deed("policy.denied", run.principal_id, "run", run.id, *place, told))
