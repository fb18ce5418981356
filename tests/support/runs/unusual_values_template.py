"""A template whose steps return, emit or fail with a value of UNUSUAL_VALUES."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from runners.errors import NavigationTimeout, ToolFailed
from runners.tools.base import Closed, Effect
from runs.calls.attempt import StepAttempt
from runs.lifecycle.changes import NewEvent
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepPlan, StepView, TaskTemplate
from runs.task_templates.registry import register

UNUSUAL_VALUES: Mapping[str, Any] = {
    "nul": "a\0b",
    "surrogate": "a\ud800b",
    "nan": math.nan,
    "infinity": math.inf,
    "huge": 10**30,
    "key": {"a\0b": 1},
    "number key": {1: 2},
}


class UnusualValuesInputs(Closed):
    """The instructions of the steps, each a verb and its argument."""

    do: list[str] = Field(min_length=1, max_length=50)
    effect: Effect = Effect.READ
    file: str = ""


@register
class UnusualValues(TaskTemplate):
    """Produces unusual values wherever a step can produce a value."""

    template_id = "test_unusual_values"
    name = "Unusual values"
    description = "Unusual values for tests."
    inputs_model = UnusualValuesInputs
    result_schema = {"type": "object"}
    example_inputs = ({"do": ["output nul"]},)
    stops_at_failed_step = True
    step_retries = 1

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return one step for each instruction."""
        effect = Effect(inputs.get("effect", "read"))
        file = inputs.get("file", "")
        return [StepPlan(what, {"what": what, "file": file}, effect) for what in inputs["do"]]

    async def do_step(self, step: StepPlan, ctx: Any) -> Mapping[str, Any]:
        """Execute the instruction of the step."""
        attempt: StepAttempt = ctx._attempt
        verb, _, what = str(step.input["what"]).partition(" ")
        if verb == "output":
            return {"value": UNUSUAL_VALUES[what]}
        if verb in ("emit", "stream"):
            _emit(attempt, verb, what)
        elif verb == "fail":
            raise ToolFailed(
                f"failed with {UNUSUAL_VALUES[what]}", details={"value": UNUSUAL_VALUES[what]}
            )
        elif verb == "save":
            save = attempt.save
            return {
                "artifactId": await save(what.encode(), name=f"{what}.txt", mime_type="text/plain")
            }
        elif verb == "append":
            with Path(str(step.input["file"])).open("a") as file:
                file.write(f"{what}\n")
            await asyncio.sleep(0.05 if what != "slowly" else 30)
        elif verb == "time_out":
            raise NavigationTimeout("always times out")
        return {}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Succeed if every step succeeded."""
        outputs = [step.output for step in steps]
        failed = next((step for step in steps if not step.succeeded), None)
        if failed is None:
            return Conclusion(
                RunStatus.SUCCEEDED, result={"outputs": outputs}, summary="every step succeeded"
            )
        error = failed.error or {"errorCode": "STEP_EXECUTION_FAILED", "message": "not reached"}
        return Conclusion(RunStatus.FAILED, error=error, summary="a step failed")


def _emit(attempt: StepAttempt, verb: str, what: str) -> None:
    if verb == "emit":
        attempt.add_event(NewEvent("tool.update", {"value": UNUSUAL_VALUES[what]}))
        return
    for n in range(int(what)):
        attempt.add_event(NewEvent("chatDelta", {"step": attempt.index, "content": f"{n} "}))
    for n in range(int(what)):
        attempt.add_event(
            NewEvent("tool.update", {"step": attempt.index, "delta": f"{n}é", "at": n})
        )
