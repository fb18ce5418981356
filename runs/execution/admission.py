"""Admission of a step's tool calls: authorize the call, find where it works, record its start.

Policies and targets are cached in this process. A call that the cache admits is recorded in one SQL
statement that also tests the preconditions of the cached values; if one does not hold, or nothing
is cached, the call is admitted by queries.
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
from runners.targets.cache import cache_target, cached_target, is_unchanged
from runners.targets.runner_endpoint import find_runner, runner_of
from runners.targets.workspaces import check_may_use, find_target, open_target
from runners.tools.registry import get_tool
from runners.workspace.workspace import ProjectWorkspace
from runs.execution.authorization import authorize_call, caller_of, record_refusal
from runs.lifecycle import call_records
from runs.lifecycle.call_records import CallRecord
from runs.lifecycle.in_flight_calls import start_run_call
from runs.models import DEVELOPER_TARGET, Run, TaskStatus
from runs.queue.leases import LeaseLost

# Where a call works: a folder, or the runner that performs it.
CallTarget = ProjectWorkspace | RunnerTarget


def admit_call(
    run: Run,
    *,
    request: ToolCallRequest,
    call: CallRecord,
    may_start: bool,
    in_flight_calls: list[str],
) -> tuple[Authorization | Refused | None, CallTarget | ToolFailed | Refused | None]:
    """Return the authorization of a step's call, as `authorize_call` does, and its target; on the
    run's database thread.

    The target is an error where the call cannot have it, and None where the call needs none or does
    not start. A call with a target is recorded as started, and its id appended to
    `in_flight_calls`. With `may_start` False the call is only authorized.

    Raises:
        LeaseLost: The run is no longer under this lease; the call must not be made.
    """
    if may_start:
        admitted = _admit_cached(run, request, call, in_flight_calls=in_flight_calls)
        if admitted is not None:
            return admitted
    authorization = authorize_call(run, request)
    is_allowed = isinstance(authorization, Authorization) and authorization.decision == "allow"
    if not (is_allowed and may_start and _needs_target(request)):
        return authorization, None
    return authorization, _start(run, request, call, in_flight_calls=in_flight_calls)


def _admit_cached(
    run: Run, request: ToolCallRequest, call: CallRecord, *, in_flight_calls: list[str]
) -> tuple[Authorization, CallTarget | None] | None:
    """Admit a call by cached values, testing them in one statement; None where the cache does not
    decide: nothing was written.
    """
    if (cached := cached_admission(run, request)) is None:
        return None
    authorization, target, preconditions = cached
    if target is None:
        return (authorization, None) if all_hold(preconditions) else None
    event = started_event(run, request, call)
    if not start_run_call(call.call_id, event, run, preconditions=preconditions):
        return None
    in_flight_calls.append(call.call_id)
    return authorization, target


def cached_admission(
    run: Run, request: ToolCallRequest
) -> tuple[Authorization, CallTarget | None, list[Precondition]] | None:
    """Return the authorization and the target of a call from cached values, without a query, with
    the preconditions to test as it starts; None where the cache does not decide.
    """
    if connection.vendor != "postgresql" or (allowed := _cached_authorization(request)) is None:
        return None
    authorization, *preconditions = *allowed, *_page_not_taken_over(run)
    if not _needs_target(request):
        return authorization, None, preconditions
    known = cached_target(caller_of(run), request.target_id) if request.target_id else None
    if known is None:
        return None
    try:
        return authorization, _target_of(run, request, known), [*preconditions, is_unchanged(known)]
    except (ToolFailed, Refused):
        return None  # the admission by queries returns the error


def _cached_authorization(request: ToolCallRequest) -> tuple[Authorization, Precondition] | None:
    """Return the authorization of a call that the cached policy allows, with its precondition; None
    for any other decision, or where a person may have been asked about the call.
    """
    if request.may_have_confirmation:
        return None
    policy = cached_policy(
        principal_id=request.principal_id,
        tenant_id=request.tenant_id,
        workspace_id=request.workspace_id,
    )
    verdict = policy.evaluate(request.tool, request.target_id, is_builtin=request.is_builtin)
    if verdict.decision != "allow":
        return None
    return Authorization(verdict, "allow"), policy.precondition


def _page_not_taken_over(run: Run) -> list[Precondition]:
    """Return the precondition that no person has taken over the page of the run's task."""
    if run.task_id is None:
        return []
    taken = "NOT EXISTS (SELECT 1 FROM runs_task WHERE id = %s AND status = %s)"
    return [Precondition(taken, (run.task_id, TaskStatus.TAKEOVER.value))]


def _needs_target(request: ToolCallRequest) -> bool:
    tool = get_tool(request.tool) if request.is_builtin else None
    return tool is None or tool.kind == "workspace"


def _start(
    run: Run, request: ToolCallRequest, call: CallRecord, *, in_flight_calls: list[str]
) -> CallTarget | ToolFailed | Refused:
    caller, find = caller_of(run), find_target if request.is_builtin else find_runner
    try:
        row = find(caller, request.target_id)
        target = _target_of(run, request, row)
    except PolicyDenied as denied:
        record_refusal(run, request, denied)
        return denied
    except (ToolFailed, TargetNotFound) as failed:
        return failed
    cache_target(caller, row)
    if not start_run_call(call.call_id, started_event(run, request, call), run):
        raise LeaseLost(run.id)
    in_flight_calls.append(call.call_id)
    return target


def _target_of(run: Run, request: ToolCallRequest, row: ExecutionTarget) -> CallTarget:
    """Return the folder or the runner of a target, for this call.

    Raises:
        ToolFailed, Refused: The call cannot use the target.
    """
    caller, tool = caller_of(run), get_tool(request.tool) if request.is_builtin else None
    if row.kind != (TargetKind.DOCKER_RUNNER if tool is None else TargetKind.WORKSPACE):
        raise TargetNotFound(f"There is no target {row.id} for the tool {request.tool[:128]}.")
    if tool is None:
        return runner_of(row, caller)
    developer_target = run.options.get(DEVELOPER_TARGET)
    target = open_target(caller, row, developer_target=developer_target, tool=tool.name)
    check_may_use(tool, target, trust=caller.trust)
    return target


def started_event(run: Run, request: ToolCallRequest, call: CallRecord) -> AuditEvent:
    """Return the audit event of a step's call that is about to start."""
    return call_records.call_started_event(run, request.step_index or 0, call)
