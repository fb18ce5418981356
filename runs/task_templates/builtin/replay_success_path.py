"""Run a stored success path again, slots filled in, without a model (runs.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from decisions.continuity.objects import find_success_path
from decisions.continuity.success_paths import fill_slots, slots_of
from decisions.errors import InvalidInput
from decisions.identity.principals import Principal
from runners.tools.base import Closed, Effect, Tool
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView
from runs.task_templates.large_outputs import fit_output
from runs.task_templates.outcomes import failed_conclusion, failed_step, warnings_of
from runs.task_templates.registry import register
from runs.task_templates.tool_steps import (
    ToolSteps,
    checked_step_args,
    find_step_tool,
    pinned_target,
    tool_step,
)


class ReplaySuccessPathInputs(Closed):
    """Which path, and what its slots are this time."""

    object_id: str = Field(
        alias="objectId",
        min_length=1,
        max_length=64,
        description="object_id of a success path whose procedure is steps of tools.",
    )
    version: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="Which version; the current one unless said."
    )
    target_id: str | None = Field(
        default=None,
        alias="targetId",
        min_length=1,
        max_length=64,
        description="The workspace that steps of its tools work in; the default one unless said.",
    )
    slots: dict[str, Any] = Field(
        default_factory=dict,
        max_length=50,
        description="A value for every slot that the path requires or its steps use. No secrets:"
        " they stand in the run's journal.",
    )


@register
class ReplaySuccessPath(ToolSteps):
    """A step a step of the procedure, one after another, the first that fails ends the run."""

    template_id = "replay_success_path"
    name = "Replay a success path"
    description = (
        "Run the stored steps of a success path again, with other values for its slots and without"
        " a model. Everything is checked before the first step begins; policy is asked before each."
    )
    inputs_model: ClassVar[type[BaseModel]] = ReplaySuccessPathInputs
    example_inputs = ({"objectId": "obj_01", "slots": {"url": "https://example.com/"}},)
    result_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "objectId": {"type": "string"},
            "version": {"type": "integer"},
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "step": {"type": "integer"},
                        "name": {"type": "string"},
                        "tool": {"type": "string"},
                        "output": {"type": "object"},
                    },
                    "required": ["step", "name", "tool", "output"],
                },
            },
        },
        "required": ["objectId", "version", "results"],
    }
    limits = {"maxSteps": 100, "maxSlots": 50}

    def complete_inputs(self, inputs: Mapping[str, Any], principal: Principal) -> Mapping[str, Any]:
        """Return the inputs with the version that is meant, so that a retry runs the same steps.

        Raises:
            InvalidInput: No such path of a user that the caller may act for, or one that cannot be
                run with these slots here.
        """
        found = find_success_path(principal, inputs["objectId"], inputs.get("version"))
        if found is None:
            raise InvalidInput("inputs.objectId: there is no such success path.")
        if isinstance(found.payload["procedure"], str):
            raise InvalidInput(
                "inputs.objectId: its procedure is a text for people; steps of tools can be run."
            )
        slots = inputs.get("slots", {})
        _check_slots(found.payload, slots)
        tools = [
            find_step_tool(step["tool"], where=f"step {number} of the success path")
            for number, step in enumerate(found.payload["procedure"], 1)
        ]
        pinned = _pinned(tools, inputs.get("targetId"), principal)
        return {**inputs, "version": found.version, "slots": slots, **pinned}

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the procedure's steps with their slots filled in.

        Raises:
            InvalidInput: A step names a tool that is not here, or arguments that it does not take.
        """
        found = find_success_path(None, inputs["objectId"], inputs["version"])
        if found is None:
            raise InvalidInput("inputs.objectId: there is no such success path.")
        return [
            _planned(index, step, inputs["slots"], inputs.get("targetId"))
            for index, step in enumerate(found.payload["procedure"], 1)
        ]

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Call the step's tool."""
        name, target_id = step.input["tool"], step.input.get("targetId")
        output = await ctx.call(name, step.input["args"], target_id=target_id)
        fitting, marks = await fit_output(name, output, ctx)
        return {**fitting, **marks}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return what every step left."""
        broken = failed_step(steps)
        if broken is not None:
            done = sum(step.succeeded for step in steps)
            again = all(step.effect == Effect.READ for step in steps)
            return failed_conclusion(
                broken, template_id=self.template_id, inputs=inputs, again=again, done=done
            )
        results = [
            {
                "step": step.index,
                "name": step.name,
                "tool": step.input["tool"],
                "output": step.output or {},
            }
            for step in steps
        ]
        return Conclusion(
            RunStatus.SUCCEEDED,
            result={
                "objectId": inputs["objectId"],
                "version": inputs["version"],
                "results": results,
            },
            summary=f"All {len(results)} steps of the success path were done.",
            warnings=warnings_of(steps),
        )


def _check_slots(payload: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    wanted = [*payload["required_slots"], *sorted(slots_of(payload["procedure"]))]
    missing = list(dict.fromkeys(name for name in wanted if name not in given))
    if missing:
        told = ", ".join(missing)
        raise InvalidInput(
            f"inputs.slots: there is no value for {told}.", details={"missingSlots": missing}
        )
    unknown = [name for name in given if name not in payload["slot_definitions"]]
    if unknown:
        raise InvalidInput(f"inputs.slots: the path knows no slot {unknown[0][:64]}.")


def _pinned(tools: Sequence[Tool], target_id: str | None, principal: Principal) -> dict[str, str]:
    """Return the target of the steps that work in a workspace, where there are any.

    Raises:
        InvalidInput: One is named that is not there, or that no step works in.
        Forbidden: The caller lacks the scope of a step's tool.
    """
    where = "inputs.targetId"
    places = [
        pinned_target(tool, target_id if tool.kind == "workspace" else None, principal, where=where)
        for tool in tools
    ]
    found = [place for place in places if place is not None]
    if target_id is not None and not found:
        raise InvalidInput(f"{where}: no step of this success path works in a workspace.")
    return {"targetId": found[0]} if found else {}


def _planned(
    number: int, step: Mapping[str, Any], slots: Mapping[str, Any], target_id: str | None
) -> StepPlan:
    where = f"step {number} of the success path"
    tool = find_step_tool(step["tool"], where=where)
    args = checked_step_args(tool, fill_slots(step["args"], slots), where=where)
    name = step.get("name") or f"{number}. {tool.name}"
    return tool_step(name, tool, args, target_id if tool.kind == "workspace" else None)
