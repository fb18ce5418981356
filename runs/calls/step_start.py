"""Start a step's tool call: authorize it, find where it works, record its start.

Policies and targets are cached in this process. The statement that records the start of a call also
tests that the run is under its lease, that policy and target have not changed since they were read,
and that no person has taken over the page. If one of these does not hold, policy and target are
read again.

The first call of a step is recorded in the statement that starts the step: one commit instead of
two. Where cached values do not allow it, the step starts it itself, like later calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decisions.authorization.authorize import Authorization, ToolCallRequest, authorize_cached
from decisions.foundation.errors import PolicyDenied, Refused
from decisions.foundation.infra.preconditions import Precondition, all_hold
from decisions.foundation.security.masking import Masker
from runners.errors import ToolFailed
from runners.invocation.planned_call import StepCall
from runners.models import ExecutionTarget
from runners.paired_browser.choice import is_paired_browser, is_still_paired
from runners.targets.cache import cache_target, cached_target, is_unchanged
from runs.calls.policy import authorize_call, record_refusal
from runs.calls.record import CallRecord
from runs.calls.request import caller_of, request_of_step
from runs.calls.start import CHANGED_MEANWHILE, MAX_TRIES, is_leased, start_call, start_with_step
from runs.calls.target import (
    PairedBrowserTarget,
    StepTarget,
    find_call_target,
    needs_target,
    open_call_target,
)
from runs.lifecycle.changes import CallStart
from runs.lifecycle.lease import LeaseLost
from runs.models import DEVELOPER_TARGET, Run, RunStep, TaskStatus
from runs.task_templates.base import TaskTemplate


@dataclass(frozen=True, slots=True)
class StepStart:
    """How a call starts, before that is recorded.

    Attributes:
        authorization: as `authorize_call` returns it.
        target: where the call works; None where it needs no target or may not start.
        preconditions: what the statement that records the start has to test.
    """

    authorization: Authorization | None
    target: StepTarget | None = None
    preconditions: Sequence[Precondition] = ()

    @property
    def may_start(self) -> bool:
        """Whether the call may start where its preconditions hold."""
        return self.authorization is not None and self.authorization.decision == "allow"


def start_step_call(
    run: Run,
    *,
    request: ToolCallRequest,
    call: CallRecord,
    may_start: bool,
    in_flight_calls: list[str],
) -> StepStart:
    """Authorize a step's call, and start it where it may: a call with a target is recorded as
    started, and its id appended to `in_flight_calls`. On the run's database thread. With
    `may_start` False the call is only authorized.

    Raises:
        LeaseLost: The run is no longer under this lease; the call must not be made.
        Refused: The call is denied, or may not use its target.
        ToolFailed: The call cannot have its target.
    """
    if not may_start:
        return StepStart(authorize_call(run, request, find_call_target(run, request)))
    cached = _cached_start(run, request)
    for _ in range(MAX_TRIES):
        start = cached or _read_start(run, request)
        if not start.may_start:
            return start
        if start.target is None:
            if cached is None or all_hold(start.preconditions):
                return start
        elif start_call(
            call.call_id,
            call.start_event(run, request.step_index or 0),
            run=run,
            preconditions=start.preconditions,
        ):
            in_flight_calls.append(call.call_id)
            return start
        elif not is_leased(run):
            raise LeaseLost(run.id)
        cached = None
    raise ToolFailed(CHANGED_MEANWHILE)


def _cached_start(run: Run, request: ToolCallRequest) -> StepStart | None:
    """Return how a call starts by cached values, without a query; None: they do not allow it."""
    if is_paired_browser(request.target_id):
        return None
    if (authorization := authorize_cached(request)) is None:
        return None
    row = None
    if needs_target(request):
        row = cached_target(caller_of(run), request.target_id) if request.target_id else None
        if row is None:
            return None
    try:
        return _start_on(run, request, authorization, row)
    except (ToolFailed, Refused):
        return None  # `_read_start` raises the error


def _read_start(run: Run, request: ToolCallRequest) -> StepStart:
    """Return how a call starts by what the database says; records a refusal."""
    found = find_call_target(run, request)
    authorization = authorize_call(run, request, found)
    if authorization is None or authorization.decision != "allow":
        return StepStart(authorization)
    try:
        if isinstance(found, ToolFailed | Refused):
            raise found
        start = _start_on(run, request, authorization, found)
    except PolicyDenied as denied:
        record_refusal(request, denied)
        raise
    if isinstance(found, ExecutionTarget):
        cache_target(caller_of(run), found)
    return start


def _start_on(
    run: Run,
    request: ToolCallRequest,
    authorization: Authorization,
    row: ExecutionTarget | PairedBrowserTarget | None,
) -> StepStart:
    """Return how an authorized call starts on a target.

    Raises:
        ToolFailed, Refused: The call cannot use the target.
    """
    preconditions = [*_page_not_taken_over(run), *authorization.preconditions]
    if row is None:
        return StepStart(authorization, preconditions=preconditions)
    if isinstance(row, PairedBrowserTarget):
        preconditions.append(is_still_paired(row.client))
        return StepStart(authorization, row, preconditions)
    developer_target = run.options.get(DEVELOPER_TARGET)
    target = open_call_target(
        caller_of(run), row, request.tool, is_builtin=request.is_builtin, developer=developer_target
    )
    preconditions.append(is_unchanged(row))
    return StepStart(authorization, target, preconditions)


def _page_not_taken_over(run: Run) -> list[Precondition]:
    """Return the precondition that no person has taken over the page of the run's task."""
    if run.task_id is None:
        return []
    taken = "NOT EXISTS (SELECT 1 FROM runs_task WHERE id = %s AND status = %s)"
    return [Precondition(taken, (run.task_id, TaskStatus.TAKEOVER.value))]


@dataclass(frozen=True, slots=True)
class FirstCall:
    """A call that may start with its step; it did where `start.is_written`."""

    request: ToolCallRequest
    call: CallRecord
    target: StepTarget
    start: CallStart


def start_first_call(
    run: Run, row: RunStep, planned: StepCall, template: TaskTemplate, masker: Masker
) -> FirstCall | None:
    """Return a step's first call where cached values allow it; on the run's database thread. None:
    the step starts the call itself.
    """
    if run.shared or template.needs_browser(row.input):
        return None
    request = request_of_step(run, index=row.index, call=planned, masker=masker)
    cached = _cached_start(run, request)
    if cached is None or cached.target is None:
        return None
    call = CallRecord.of(request)
    event = call.start_event(run, row.index)
    start = start_with_step(call.call_id, event, run, cached.preconditions)
    return FirstCall(request, call, cached.target, start)
