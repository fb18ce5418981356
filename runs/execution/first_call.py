"""The call that a step begins with, told in the statement that starts the step: one commit instead
of two. Where anything has to be asked first, the step asks it itself, as for each later call.
"""

from __future__ import annotations

from dataclasses import dataclass

from decisions.authorization.authorize import Authorization, ToolCallRequest
from decisions.security.masking import Masker
from runners.invocation.step_call import StepCall
from runs.execution.admission import Place, begun, cached_admission
from runs.execution.authorization import tool_use_of_step
from runs.lifecycle.call_records import CallRecord
from runs.lifecycle.changes import NewEvent
from runs.lifecycle.in_flight_calls import CallStart
from runs.models import Run, RunStep
from runs.task_templates.base import TaskTemplate


@dataclass(frozen=True, slots=True)
class FirstCall:
    """A call that may begin with its step; it did where `opening.is_open`."""

    use: ToolCallRequest
    call: CallRecord
    ruling: Authorization
    place: Place
    opening: CallStart


def planned_call(run: Run, row: RunStep, template: TaskTemplate) -> StepCall | None:
    """Return the call with which a step begins, unless it goes on behind a wait."""
    return template.first_call(row.input, run.inputs) if row.paused is None else None


def start_events(row: RunStep, planned: StepCall) -> list[NewEvent]:
    """Return what is told of a step's call together with its start."""
    if planned.event is None:
        return []
    type_, data = planned.event
    return [NewEvent(type_, {"step": row.index, **data})]


def first_call(
    run: Run, row: RunStep, planned: StepCall, template: TaskTemplate, masker: Masker
) -> FirstCall | None:
    """Return the call with which a step begins, where this process knows that it may be made and
    where it works; on the run's database thread. None: the step begins it itself.
    """
    if run.shared or template.needs_browser(row.input):
        return None
    use = tool_use_of_step(run, index=row.index, call=planned, masker=masker)
    if (way := cached_admission(run, use)) is None:
        return None
    ruling, place, still = way
    if place is None:
        return None
    call = CallRecord.of(use)
    opening = CallStart.of_run(call.call_id, begun(run, use, call), run, preconditions=still)
    return FirstCall(use, call, ruling, place, opening)
