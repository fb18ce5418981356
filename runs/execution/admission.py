"""How a step's call begins: policy is asked, it is found where the call works (in a folder, or on a
runner), and the audit log is told; by what this process knows, where one statement can test it.
"""

from __future__ import annotations

from django.db import connection

from decisions.audit.record import AuditEvent
from decisions.authorization.authorize import Authorization, ToolCallRequest
from decisions.authorization.policy import cached_policy
from decisions.errors import PolicyDenied, Refused, TargetNotFound
from decisions.infra.preconditions import Precondition
from decisions.infra.prepared_statements import all_hold
from runners.errors import ToolFailed
from runners.gateway.request import RunnerTarget
from runners.models import ExecutionTarget, TargetKind
from runners.targets.cache import is_unchanged, keep_by_heart, target_by_heart
from runners.targets.runner_endpoint import find_runner, runner_of
from runners.targets.workspaces import check_may_use, find_target, open_target
from runners.tools.registry import get_tool
from runners.workspace.workspace import Workspace
from runs.execution.authorization import authorize_call, caller_of, record_refusal
from runs.lifecycle import call_records
from runs.lifecycle.call_records import CallRecord
from runs.lifecycle.in_flight_calls import start_run_call
from runs.models import DEVELOPER_TARGET, Run, TaskStatus
from runs.queue.leases import LeaseLost

Place = Workspace | RunnerTarget


def admit_call(
    run: Run, *, use: ToolCallRequest, call: CallRecord, may_begin: bool, opened: list[str]
) -> tuple[Authorization | Refused | None, Place | ToolFailed | Refused | None]:
    """Return what becomes of a step's call, as `rule_on_call` does, and where it works: a folder, a
    runner, why there is neither for it, or None where it needs no place or does not begin; on the
    run's database thread.

    A call that has a place is told before it is made, and named in `opened`; a target that is
    disabled is a denial, and told as one. Without `may_begin` policy is asked alone.

    Raises:
        LeaseLost: The run is not ours any more; the call is not to be made.
    """
    if may_begin and (begun := _begin_by_heart(run, use, call, opened=opened)) is not None:
        return begun
    ruling = authorize_call(run, use)
    is_allowed = isinstance(ruling, Authorization) and ruling.decision == "allow"
    if not (is_allowed and may_begin and _needs_place(use)):
        return ruling, None
    return ruling, _begin(run, use, call, opened=opened)


def _begin_by_heart(
    run: Run, use: ToolCallRequest, call: CallRecord, *, opened: list[str]
) -> tuple[Authorization, Place | None] | None:
    """Begin a call by what this process knows of policy and of the target, in one statement that
    tests both; None where they have to be asked anew: nothing was written.
    """
    if (way := cached_admission(run, use)) is None:
        return None
    ruling, place, still = way
    if place is None:
        return (ruling, None) if all_hold(still) else None
    if not start_run_call(call.call_id, begun(run, use, call), run, preconditions=still):
        return None
    opened.append(call.call_id)
    return ruling, place


def cached_admission(
    run: Run, use: ToolCallRequest
) -> tuple[Authorization, Place | None, list[Precondition]] | None:
    """Return the ruling on a call and where it works, as far as this process knows without a query,
    and what has to be so still as it begins; None where policy or the target has to be asked.
    """
    if connection.vendor != "postgresql" or (allowed := _allowed_by_heart(use)) is None:
        return None
    ruling, *still = *allowed, *_is_nobodys_page(run)
    if not _needs_place(use):
        return ruling, None, still
    known = target_by_heart(caller_of(run), use.target_id) if use.target_id else None
    if known is None:
        return None
    try:
        return ruling, _place_on(run, use, known), [*still, is_unchanged(known)]
    except (ToolFailed, Refused):
        return None  # whoever asks anew says it


def _allowed_by_heart(use: ToolCallRequest) -> tuple[Authorization, Precondition] | None:
    """Return the ruling on a call that passes by the rules as this process knows them, and the
    condition under which it holds; None where anything else is to be said, or a person was asked
    before: `rule_on_call` says it.
    """
    if use.may_have_confirmation:
        return None
    policy = cached_policy(
        principal_id=use.principal_id, tenant_id=use.tenant_id, workspace_id=use.workspace_id
    )
    verdict = policy.evaluate(use.tool, use.target_id, is_builtin=use.is_builtin)
    return (
        (Authorization(verdict, "allow"), policy.precondition)
        if verdict.decision == "allow"
        else None
    )


def _is_nobodys_page(run: Run) -> list[Precondition]:
    """That no person has the page of the run's task, as `is_taken_over` asks."""
    if run.task_id is None:
        return []
    taken = "NOT EXISTS (SELECT 1 FROM runs_task WHERE id = %s AND status = %s)"
    return [Precondition(taken, (run.task_id, TaskStatus.TAKEOVER.value))]


def _needs_place(use: ToolCallRequest) -> bool:
    tool = get_tool(use.tool) if use.is_builtin else None
    return tool is None or tool.kind == "workspace"


def _begin(
    run: Run, use: ToolCallRequest, call: CallRecord, *, opened: list[str]
) -> Place | ToolFailed | Refused:
    caller, find = caller_of(run), find_target if use.is_builtin else find_runner
    try:
        target = find(caller, use.target_id)
        place = _place_on(run, use, target)
    except PolicyDenied as denied:
        record_refusal(run, use, denied)
        return denied
    except (ToolFailed, TargetNotFound) as failed:
        return failed
    keep_by_heart(caller, target)
    if not start_run_call(call.call_id, begun(run, use, call), run):
        raise LeaseLost(run.id)
    opened.append(call.call_id)
    return place


def _place_on(run: Run, use: ToolCallRequest, target: ExecutionTarget) -> Place:
    """Return what a target is to a call: the folder that it works in, or the runner that performs
    it.

    Raises:
        ToolFailed, Refused: It is not for this call.
    """
    caller, tool = caller_of(run), get_tool(use.tool) if use.is_builtin else None
    if target.kind != (TargetKind.DOCKER_RUNNER if tool is None else TargetKind.WORKSPACE):
        raise TargetNotFound(f"There is no such target {target.id} for {use.tool[:128]}.")
    if tool is None:
        return runner_of(target, caller)
    chosen = run.options.get(DEVELOPER_TARGET)
    place = open_target(caller, target, developer_target=chosen, tool=tool.name)
    check_may_use(tool, place, trust=caller.trust)
    return place


def begun(run: Run, use: ToolCallRequest, call: CallRecord) -> AuditEvent:
    """Return the audit row of a step's call that is about to be made."""
    return call_records.call_started_event(run, use.step_index or 0, call)
