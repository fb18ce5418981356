"""Admission of a step's tool calls: authorize the call, find where it works, record its start.

Policies and targets are cached in this process. The statement that records the start of a call also
tests that the run is under its lease, that policy and target have not changed since they were read,
and that no person has taken over the page. If one of these does not hold, policy and target are
read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decisions.audit.record import AuditEvent
from decisions.authorization.authorize import Authorization, ToolCallRequest
from decisions.foundation.errors import PolicyDenied, Refused, TargetNotFound
from decisions.foundation.infra.preconditions import Precondition, all_hold
from runners.errors import ToolFailed
from runners.models import ExecutionTarget
from runners.paired_browser.choice import is_still_paired
from runners.targets.cache import cache_target, cached_target, is_unchanged
from runs.calls.browser_policy import PairedBrowserTarget
from runs.calls.policy import (
    authorize_cached,
    authorize_call,
    caller_of,
    find_call_target,
    needs_target,
    record_refusal,
)
from runs.calls.targets import StepTarget, open_call_target
from runs.lifecycle import call_records
from runs.lifecycle.call_records import CallRecord
from runs.lifecycle.in_flight_calls import is_leased, start_call
from runs.lifecycle.lease import LeaseLost
from runs.models import DEVELOPER_TARGET, Run, TaskStatus

MAX_TRIES = 5  # to read policy and target and start the call before either changes
CHANGED_MEANWHILE = "The policy rules or the target changed again and again; the call was not made."


@dataclass(frozen=True, slots=True)
class Admission:
    """What is known about a call before its start is recorded.

    Attributes:
        authorization: as `authorize_call` returns it.
        target: where the call works; None where it needs no target or does not start.
        target_error: why it cannot have its target.
        preconditions: what the statement that records the start has to test.
    """

    authorization: Authorization | Refused | None
    target: StepTarget | None = None
    target_error: ToolFailed | Refused | None = None
    preconditions: Sequence[Precondition] = ()

    @property
    def may_start(self) -> bool:
        """Whether the call may start where its preconditions hold."""
        return _is_allowed(self.authorization) and self.target_error is None


def admit_call(
    run: Run,
    *,
    request: ToolCallRequest,
    call: CallRecord,
    may_start: bool,
    in_flight_calls: list[str],
) -> tuple[Authorization | Refused | None, StepTarget | ToolFailed | Refused | None]:
    """Return the authorization of a step's call, as `authorize_call` does, and its target; on the
    run's database thread.

    The target is an error where the call cannot have it, and None where the call needs none or does
    not start. A call with a target is recorded as started, and its id appended to
    `in_flight_calls`. With `may_start` False the call is only authorized.

    Raises:
        LeaseLost: The run is no longer under this lease; the call must not be made.
    """
    if not may_start:
        return authorize_call(run, request, find_call_target(run, request)), None
    admission = cached_admission(run, request)
    for _ in range(MAX_TRIES):
        is_fresh = admission is None
        admission = admission or _read_admission(run, request)
        authorization = admission.authorization
        result = authorization, admission.target or admission.target_error
        if not admission.may_start:
            return result
        if admission.target is None:
            if is_fresh or all_hold(admission.preconditions):
                return result
        elif start_call(
            call.call_id,
            started_event(run, request, call),
            run=run,
            preconditions=admission.preconditions,
        ):
            in_flight_calls.append(call.call_id)
            return result
        elif not is_leased(run):
            raise LeaseLost(run.id)
        admission = None
    return authorization, ToolFailed(CHANGED_MEANWHILE)


def cached_admission(run: Run, request: ToolCallRequest) -> Admission | None:
    """Return the admission of a call from cached values, without a query; None where they do not
    allow it.
    """
    if (authorization := authorize_cached(request)) is None:
        return None
    caller, row = caller_of(run), None
    if needs_target(request):
        row = cached_target(caller, request.target_id) if request.target_id else None
        if row is None:
            return None
    try:
        return _admission(run, request, authorization, row)
    except (ToolFailed, Refused):
        return None  # the admission by queries returns the error


def _read_admission(run: Run, request: ToolCallRequest) -> Admission:
    """Return the admission of a call from what the database says; records a refusal."""
    found = find_call_target(run, request)
    authorization = authorize_call(run, request, found)
    if not (isinstance(authorization, Authorization) and _is_allowed(authorization)):
        return Admission(authorization)
    try:
        if isinstance(found, ToolFailed | Refused):
            raise found
        admission = _admission(run, request, authorization, found)
    except PolicyDenied as denied:
        record_refusal(run, request, denied)
        return Admission(authorization, target_error=denied)
    except (ToolFailed, TargetNotFound) as failed:
        return Admission(authorization, target_error=failed)
    if isinstance(found, ExecutionTarget):
        cache_target(caller_of(run), found)
    return admission


def _admission(
    run: Run,
    request: ToolCallRequest,
    authorization: Authorization,
    row: ExecutionTarget | PairedBrowserTarget | None,
) -> Admission:
    """Return the admission of an authorized call.

    Raises:
        ToolFailed, Refused: The call cannot use the target.
    """
    preconditions = _page_not_taken_over(run)
    if authorization.precondition is not None:
        preconditions.append(authorization.precondition)
    if row is None:
        return Admission(authorization, preconditions=preconditions)
    if isinstance(row, PairedBrowserTarget):
        preconditions.append(is_still_paired(row.client))
        return Admission(authorization, row, preconditions=preconditions)
    developer_target = run.options.get(DEVELOPER_TARGET)
    target = open_call_target(
        caller_of(run), row, request.tool, is_builtin=request.is_builtin, developer=developer_target
    )
    preconditions.append(is_unchanged(row))
    return Admission(authorization, target, preconditions=preconditions)


def _is_allowed(authorization: Authorization | Refused | None) -> bool:
    return isinstance(authorization, Authorization) and authorization.decision == "allow"


def _page_not_taken_over(run: Run) -> list[Precondition]:
    """Return the precondition that no person has taken over the page of the run's task."""
    if run.task_id is None:
        return []
    taken = "NOT EXISTS (SELECT 1 FROM runs_task WHERE id = %s AND status = %s)"
    return [Precondition(taken, (run.task_id, TaskStatus.TAKEOVER.value))]


def started_event(run: Run, request: ToolCallRequest, call: CallRecord) -> AuditEvent:
    """Return the audit event of a step's call that is about to start."""
    return call_records.call_started_event(run, request.step_index or 0, call)
