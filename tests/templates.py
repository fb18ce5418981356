"""Templates that tests run: they need no browser and do what their inputs say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from runners.errors import NavigationTimeout, ToolFailed
from runners.tools.base import Closed, Effect
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.registry import register


class StepwiseInputs(Closed):
    """What each step does: `ok`, `sleep:SECONDS`, `fail`, `flaky:FILE` (fails once), `touch:FILE`,
    `bug`, `raise:CODE` (fails as a tool with this code).
    """

    do: list[str] = Field(min_length=1, max_length=1000)
    effect: Effect = Effect.READ
    concurrency: int = 1
    shared: bool = False


@register
class Stepwise(TaskTemplate):
    """Does its steps as told and concludes like a batch."""

    template_id = "test_stepwise"
    name = "Stepwise"
    description = "Steps for tests."
    inputs_model = StepwiseInputs
    result_schema = {"type": "object"}
    example_inputs = ({"do": ["ok"]},)
    stops_at_failed_step = False
    step_retries = 1

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return a step an instruction."""
        effect = Effect(inputs.get("effect", "read"))
        return [StepPlan(f"do {what}", {"what": what}, effect) for what in inputs["do"]]

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Do what the step says."""
        what, _, argument = str(step.input["what"]).partition(":")
        if what == "sleep":
            await asyncio.sleep(float(argument))
        elif what == "fail":
            raise ToolFailed("told to fail")
        elif what == "flaky":
            if not Path(argument).exists():
                Path(argument).touch()
                raise NavigationTimeout("told to fail once")
        elif what == "touch":
            with Path(argument).open("a") as file:
                file.write("x")
        elif what == "bug":
            raise ZeroDivisionError("a defect with a secret /path")
        elif what == "raise":
            raise type("Told", (ToolFailed,), {"code": argument})("told to fail so")
        return {"did": what}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Count."""
        done = sum(step.succeeded for step in steps)
        if not done:
            error = dict(steps[0].error or {"errorCode": "STEP_EXECUTION_FAILED", "message": "-"})
            at = {"step": steps[0].index, "name": steps[0].name}
            return Conclusion(RunStatus.FAILED, error={**error, "step": at}, summary="none")
        status = RunStatus.SUCCEEDED if done == len(steps) else RunStatus.PARTIAL_SUCCESS
        return Conclusion(status, result={"done": done}, summary=f"{done} done")

    def shares_steps(self, inputs: Mapping[str, Any]) -> bool:
        """Return what was asked for."""
        return bool(inputs.get("shared"))

    def concurrency(self, inputs: Mapping[str, Any]) -> int:
        """Return what was asked for."""
        return int(inputs.get("concurrency", 1))


@register
class LocalOnly(Stepwise):
    """The same, for local callers alone."""

    template_id = "test_local_only"
    name = "Stepwise, local"
    trust_levels = ("local",)
