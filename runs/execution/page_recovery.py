"""The page that the steps of a run share, when it is not there: after a lost worker, or a crash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runners.errors import PageLost, ToolFailed
from runners.tools.base import Effect
from runs.execution.step_context import StepRun
from runs.journal.interruptions import CallFailed
from runs.lifecycle.changes import NewEvent
from runs.task_templates.base import StepPlan, StepView, TaskTemplate


async def restore_page(template: TaskTemplate, plan: StepPlan, step_run: StepRun) -> None:
    """Do the steps again that came before, where they left a page that is gone and this one works
    on it; their results stay as they were.

    Raises:
        PageLost: One of them has the effect `once` and is not repeated (reliability rule 4).
        CallFailed, ToolFailed: A step could not be done again; details.restoring names it.
    """
    session = step_run.browser
    if session is None or session.has_page or not template.uses_shared_page(plan.input):
        return
    if step_run.had_page:  # what a person says of it is heard first (StepRun.call)
        return
    earlier = [s for s in step_run.earlier if s.succeeded and template.uses_shared_page(s.input)]
    if not earlier:
        return
    for step in earlier:
        if step.effect == Effect.ONCE:
            raise _not_repeated(step)
    told = {"step": step_run.index, "restoring": len(earlier), "reason": "the page was lost"}
    step_run.tell(NewEvent("step.progress", told))
    for step in earlier:
        before = step_run.earlier[: step.index]
        again = replace(step_run, index=step.index, earlier=before, replay=None, calls=[])
        await _do_again(template, step, again)


async def _do_again(template: TaskTemplate, step: StepView, step_run: StepRun) -> None:
    plan = StepPlan(step.name, step.input, step.effect)
    try:
        await template.do_step(plan, step_run)
    except ToolFailed as failure:
        failure.details["restoring"] = step.name
        raise
    except CallFailed as failure:
        raise CallFailed(_restoring(failure.error, step.name)) from None


def _restoring(error: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {**error, "details": {**(error.get("details") or {}), "restoring": name}}


def _not_repeated(step: StepView) -> PageLost:
    return PageLost(
        f"The page was lost after '{step.name}' had been done, which is never done twice: what came"
        " of it cannot be read any more.",
        details={"causeCode": "PAGE_CRASHED", "effect": "done", "step": step.index},
    )
