"""Templates for tests: they need no browser and carry out the instructions of their inputs."""

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
    """The instruction of each step.

    One of `ok`, `sleep:SECONDS`, `until:FILE` (waits for the file), `fail`, `flaky:FILE` (fails
    once), `touch:FILE`, `bug`, `raise:CODE` (fails like a tool with this error code), `say:TEXT`
    (in an event and the output).
    """

    do: list[str] = Field(min_length=1, max_length=1000)
    effect: Effect = Effect.READ
    concurrency: int = 1
    shared: bool = False


@register
class Stepwise(TaskTemplate):
    """Carry out one instruction per step and conclude like a batch template."""

    template_id = "test_stepwise"
    name = "Stepwise"
    description = "Steps for tests."
    inputs_model = StepwiseInputs
    result_schema = {"type": "object"}
    example_inputs = ({"do": ["ok"]},)
    stops_at_failed_step = False
    step_retries = 1

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return one step for each instruction."""
        effect = Effect(inputs.get("effect", "read"))
        return [StepPlan(f"do {what}", {"what": what}, effect) for what in inputs["do"]]

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Carry out the instruction of the step."""
        what, _, argument = str(step.input["what"]).partition(":")
        if what in ("sleep", "until"):
            await _wait(what, argument)
        elif what == "say":
            ctx.emit("chatDelta", {"content": argument})
            return {"did": what, "said": argument}
        elif what == "touch":
            with Path(argument).open("a") as file:
                file.write("x")
        else:
            _fail(what, argument)
        return {"did": what}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the number of steps that succeeded and failed."""
        done = sum(step.succeeded for step in steps)
        if not done:
            error = dict(steps[0].error or {"errorCode": "STEP_EXECUTION_FAILED", "message": "-"})
            failed_step = {"step": steps[0].index, "name": steps[0].name}
            return Conclusion(
                RunStatus.FAILED, error={**error, "step": failed_step}, summary="none"
            )
        status = RunStatus.SUCCEEDED if done == len(steps) else RunStatus.PARTIAL_SUCCESS
        return Conclusion(status, result={"done": done}, summary=f"{done} done")

    def shares_steps(self, inputs: Mapping[str, Any]) -> bool:
        """Return the input `shared`."""
        return bool(inputs.get("shared"))

    def concurrency(self, inputs: Mapping[str, Any]) -> int:
        """Return the input `concurrency`."""
        return int(inputs.get("concurrency", 1))


def _fail(what: str, argument: str) -> None:
    if what == "fail":
        raise ToolFailed("failed as instructed")
    if what == "flaky" and not Path(argument).exists():
        Path(argument).touch()
        raise NavigationTimeout("failed once as instructed")
    if what == "bug":
        raise ZeroDivisionError("a defect with a secret /path")
    if what == "raise":
        raise type("FailedWithCode", (ToolFailed,), {"code": argument})("failed as instructed")


async def _wait(what: str, argument: str) -> None:
    if what == "sleep":
        await asyncio.sleep(float(argument))
        return
    while not Path(argument).exists():
        await asyncio.sleep(0.02)


@register
class LocalOnly(Stepwise):
    """The same template, for callers of trust level local only."""

    template_id = "test_local_only"
    name = "Stepwise, local"
    trust_levels = ("local",)
