"""A template that both versions load; its `once` steps leave a line each in a file.

It is copied out of this package, because the older version has a package `tests` of its own.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict


def import_first(*names: str) -> Any:
    """Import the first of these modules that this version has."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(f"none of {names}")


base = import_first("runs.task_templates.base", "runs.task_templates.registry")
tools = import_first("runners.tools.base", "runners.base")
registry = importlib.import_module("runs.task_templates.registry")
TaskTemplate: Any = base.TaskTemplate
RunStatus = importlib.import_module("runs.models").RunStatus


class Inputs(BaseModel):
    """The number of steps, and the file to which the last one appends a line."""

    model_config = ConfigDict(extra="forbid")
    steps: int
    file: str
    shared: bool = False


class Trial(TaskTemplate):
    """Some steps that only read, then one with an effect."""

    template_id = "upgrade_trial"
    name = "Upgrade trial"
    description = "Steps for the trial of a rolling upgrade."
    inputs_model = Inputs
    result_schema = {"type": "object"}
    example_inputs = ({"steps": 1, "file": "/tmp/x"},)
    step_retries = 1

    def plan(self, inputs: Mapping[str, Any]) -> list[Any]:
        """Return the steps."""
        read, once = tools.Effect("read"), tools.Effect("once")
        steps = [base.StepPlan(f"read {n}", {}, read) for n in range(inputs["steps"])]
        return [*steps, base.StepPlan("append", {"file": inputs["file"]}, once)]

    async def do_step(self, step: Any, ctx: Any) -> Mapping[str, Any]:
        """Wait a moment, or append a line."""
        if "file" in step.input:
            with Path(step.input["file"]).open("a") as file:
                file.write("x\n")
        else:
            await asyncio.sleep(0.2)
        return {"done": True}

    def shares_steps(self, inputs: Mapping[str, Any]) -> bool:
        """Return the input `shared`."""
        return bool(inputs.get("shared"))

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[Any]) -> Any:
        """Succeed if every step did."""
        done = sum(step.succeeded for step in steps)
        if done < len(steps):
            failed = next(step for step in steps if not step.succeeded)
            return base.Conclusion(
                RunStatus.FAILED,
                error=dict(failed.error or {"errorCode": "STEP_EXECUTION_FAILED", "message": "-"}),
                summary="failed",
            )
        return base.Conclusion(RunStatus.SUCCEEDED, result={"done": done}, summary="done")


(getattr(registry, "register", None) or registry.template)(Trial)
