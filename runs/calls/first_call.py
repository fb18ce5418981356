"""The first tool call of a step, recorded in the statement that starts the step: one commit
instead of two. Where cached values do not admit it, the step admits it itself, like later calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.security.masking import Masker
from runners.invocation.step_call import StepCall
from runs.calls.policy import request_of_step
from runs.calls.start import cached_admission, started_event
from runs.calls.targets import StepTarget
from runs.lifecycle.call_records import CallRecord
from runs.lifecycle.changes import NewEvent
from runs.lifecycle.in_flight_calls import CallStart
from runs.models import Run, RunStep
from runs.task_templates.base import TaskTemplate


@dataclass(frozen=True, slots=True)
class FirstCall:
    """A call that may start with its step; it did where `start.is_written`."""

    request: ToolCallRequest
    call: CallRecord
    target: StepTarget
    start: CallStart


def planned_call(run: Run, row: RunStep, template: TaskTemplate) -> StepCall | None:
    """Return the first call that the template plans for a step; None for a resumed step."""
    return template.first_call(row.input, run.inputs) if row.paused is None else None


def start_events(row: RunStep, planned: StepCall) -> list[NewEvent]:
    """Return the events of a step's first call, written with the step's start."""
    if planned.event is None:
        return []
    type_, data = planned.event
    return [NewEvent(type_, {"step": row.index, **data})]


def admit_first_call(
    run: Run, row: RunStep, planned: StepCall, template: TaskTemplate, masker: Masker
) -> FirstCall | None:
    """Return a step's first call where cached values admit it; on the run's database thread. None:
    the step admits the call itself.
    """
    if run.shared or template.needs_browser(row.input):
        return None
    request = request_of_step(run, index=row.index, call=planned, masker=masker)
    admission = cached_admission(run, request)
    if admission is None or admission.target is None:
        return None
    call = CallRecord.of(request)
    event = started_event(run, request, call)
    start = CallStart.of_run(call.call_id, event, run, preconditions=admission.preconditions)
    return FirstCall(request, call, admission.target, start)
