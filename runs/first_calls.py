"""The call that a step begins with, told in the statement that starts the step: one commit instead
of two. Where anything has to be asked first, the step asks it itself, as for each later call.
"""

from __future__ import annotations

from dataclasses import dataclass

from decisions.deeds import Ruling, ToolUse
from decisions.masking import Masker
from runs.beginnings import Place, begun, known_way
from runs.made_calls import MadeCall
from runs.models import Run, RunStep
from runs.open_calls import CallToOpen
from runs.step_rulings import use_of_step
from runs.task_templates.registry import TaskTemplate


@dataclass(frozen=True, slots=True)
class FirstCall:
    """A call that may begin with its step; it did where `opening.is_open`."""

    use: ToolUse
    call: MadeCall
    ruling: Ruling
    place: Place
    opening: CallToOpen


def first_call(
    run: Run, row: RunStep, template: TaskTemplate, masker: Masker
) -> FirstCall | None:  # fmt: skip
    """Return the call with which a step begins, where this process knows that it may be made and
    where it works; on the run's database thread. None: the step begins it itself.
    """
    if row.paused is not None or run.shared or template.needs_browser(row.input):
        return None
    if (planned := template.first_call(row.input, run.inputs)) is None:
        return None
    use = use_of_step(run, index=row.index, call=planned, masker=masker)
    if (way := known_way(run, use)) is None:
        return None
    ruling, place, still = way
    if place is None:
        return None
    call = MadeCall.of(use)
    opening = CallToOpen.of_run(call.call_id, begun(run, use, call), run, if_still=still)
    return FirstCall(use, call, ruling, place, opening)
