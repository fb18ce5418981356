"""Restore the page that the steps of a run share after a lost worker or a crashed page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runners.errors import PageLost, ToolFailed
from runners.tools.base import Effect
from runs.calls.attempt import StepAttempt
from runs.execution.step_context import StepRun
from runs.journal.interruptions import CallFailed
from runs.lifecycle.changes import NewEvent
from runs.task_templates.base import StepPlan, StepView, TaskTemplate


async def restore_page(template: TaskTemplate, plan: StepPlan, attempt: StepAttempt) -> None:
    """Execute the earlier steps again if this step needs the page that they opened and that was
    lost. Their results are not changed.

    Raises:
        PageLost: One of them has the effect `once`, so it is not repeated.
        CallFailed, ToolFailed: A step could not be repeated; details.restoring names it.
    """
    session = attempt.browser
    if session is None or session.has_page or not template.uses_shared_page(plan.input):
        return
    if attempt.had_page:  # the person's decision about the page comes first (call_from_step)
        return
    earlier = [s for s in attempt.earlier if s.succeeded and template.uses_shared_page(s.input)]
    if not earlier:
        return
    for step in earlier:
        if step.effect == Effect.ONCE:
            raise _not_repeated(step)
    data = {"step": attempt.index, "restoring": len(earlier), "reason": "the page was lost"}
    attempt.add_event(NewEvent("step.progress", data))
    for step in earlier:
        before = attempt.earlier[: step.index]
        again = replace(attempt, index=step.index, earlier=before, replay=None, calls=[])
        await _repeat(template, step, again)


async def _repeat(template: TaskTemplate, step: StepView, attempt: StepAttempt) -> None:
    plan = StepPlan(step.name, step.input, step.effect)
    try:
        await template.do_step(plan, StepRun(attempt))
    except ToolFailed as failure:
        failure.details["restoring"] = step.name
        raise
    except CallFailed as failure:
        raise CallFailed(_restoring(failure.error, step.name)) from None


def _restoring(error: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {**error, "details": {**(error.get("details") or {}), "restoring": name}}


def _not_repeated(step: StepView) -> PageLost:
    return PageLost(
        f"The page was lost after '{step.name}', a step that is never repeated; its outcome cannot"
        " be read any more.",
        details={"causeCode": "PAGE_CRASHED", "effect": "done", "step": step.index},
    )
