"""The template `replay_success_path`: run a stored success path again with other slot values,
without a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, Field

from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from decisions.memory.objects import find_success_path
from decisions.memory.success_paths import fill_slots, slots_of
from runners.errors import ToolFailed
from runners.tools.base import Closed, Effect, Tool
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView
from runs.task_templates.large_outputs import fit_output
from runs.task_templates.outcomes import failed_conclusion, failed_step, warnings_of
from runs.task_templates.page_inputs import check_http_status
from runs.task_templates.registry import register
from runs.task_templates.subjects import first_words
from runs.task_templates.tool_steps import (
    ToolSteps,
    checked_step_args,
    find_step_tool,
    pinned_target,
    tool_step,
)


class ReplaySuccessPathInputs(Closed):
    """The inputs of `replay_success_path`: the path, and values for its slots."""

    object_id: str = Field(
        alias="objectId",
        min_length=1,
        max_length=64,
        description=_("object_id of a success path whose procedure is steps of tools."),
    )
    version: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description=_("The version; by default the current one.")
    )
    target_id: str | None = Field(
        default=None,
        alias="targetId",
        min_length=1,
        max_length=64,
        description=_("The workspace for workspace tools; by default the caller's default one."),
    )
    slots: dict[str, Any] = Field(
        default_factory=dict,
        max_length=50,
        description=_(
            "A value for every slot that the path requires or its steps use. No secrets:"
            " the values are stored in the run's journal."
        ),
    )


PAGE_TOOLS = frozenset({"open_page", "read_page", "read_current_page"})


@register
class ReplaySuccessPath(ToolSteps):
    """One step per step of the procedure, in order; the first that fails ends the run."""

    template_id = "replay_success_path"
    name = _("Replay a success path")
    description = _(
        "Run the stored steps of a success path again, with other values for its slots and without"
        " a model. All steps are validated before the first one starts; policy authorizes each. A"
        " step that waits for a condition in vain, or gets a page with an HTTP error status, fails."
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
        """Return the inputs with the version of the path, so that a retry runs the same steps.

        Raises:
            InvalidInput: The caller may act for no user with this path, its procedure is a text, or
                the slots, a tool or the target do not fit.
        """
        found = find_success_path(principal, inputs["objectId"], inputs.get("version"))
        if found is None:
            raise InvalidInput("inputs.objectId: there is no such success path.")
        if isinstance(found.payload["procedure"], str):
            raise InvalidInput(
                "inputs.objectId: its procedure is a text for people; only tool steps can be run."
            )
        slots = inputs.get("slots", {})
        _check_slots(found.payload, slots)
        tools = [
            find_step_tool(step["tool"], where=f"step {number} of the success path")
            for number, step in enumerate(found.payload["procedure"], 1)
        ]
        pinned = _pinned(tools, inputs.get("targetId"), principal)
        return {**inputs, "version": found.version, "slots": slots, **pinned}

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return the first words of the path's intent; its id if it does not exist any more."""
        found = find_success_path(None, inputs["objectId"], inputs.get("version"))
        return first_words(found.payload["intent"]) if found else str(inputs["objectId"])

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the procedure's steps with their slots filled in.

        Raises:
            InvalidInput: A step's tool does not exist, or does not accept its arguments.
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
        _check_condition(name, output)
        if name in PAGE_TOOLS:
            await check_http_status(output, {}, ctx)
        fitted, marks = await fit_output(name, output, ctx)
        return {**fitted, **marks}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the output of every step."""
        failed = failed_step(steps)
        if failed is not None:
            done = sum(step.succeeded for step in steps)
            again = all(step.effect == Effect.READ for step in steps)
            return failed_conclusion(
                failed, template_id=self.template_id, inputs=inputs, again=again, done=done
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
            summary=f"All {len(results)} steps of the success path succeeded.",
            warnings=warnings_of(steps),
        )


def _check_condition(tool: str, output: Mapping[str, Any]) -> None:
    """Raise if a step that waits for a condition ended without it: the path has not succeeded."""
    if tool == "wait_for" and output.get("met") is False:
        raise ToolFailed(
            f"The condition of the step did not become true; the page shows “{output['title']}”.",
            details={"reason": "condition_not_met", "url": output["url"]},
        )


def _check_slots(payload: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    needed = [*payload["required_slots"], *sorted(slots_of(payload["procedure"]))]
    missing = list(dict.fromkeys(name for name in needed if name not in given))
    if missing:
        raise InvalidInput(
            f"inputs.slots: there is no value for {', '.join(missing)}.",
            details={"missingSlots": missing},
        )
    unknown = [name for name in given if name not in payload["slot_definitions"]]
    if unknown:
        raise InvalidInput(f"inputs.slots: the path has no slot {unknown[0][:64]}.")


def _pinned(tools: Sequence[Tool], target_id: str | None, principal: Principal) -> dict[str, str]:
    """Return {targetId} of the steps that work in a workspace, or {} if none does.

    Raises:
        InvalidInput: `target_id` does not exist, or no step works in a workspace.
        Forbidden: The caller lacks the scope of a step's tool.
    """
    where = "inputs.targetId"
    targets = [
        pinned_target(tool, target_id if tool.kind == "workspace" else None, principal, where=where)
        for tool in tools
    ]
    pinned = [target for target in targets if target is not None]
    if target_id is not None and not pinned:
        raise InvalidInput(f"{where}: no step of this success path works in a workspace; omit it.")
    return {"targetId": pinned[0]} if pinned else {}


def _planned(
    number: int, step: Mapping[str, Any], slots: Mapping[str, Any], target_id: str | None
) -> StepPlan:
    where = f"step {number} of the success path"
    tool = find_step_tool(step["tool"], where=where)
    args = checked_step_args(tool, fill_slots(step["args"], slots), where=where)
    name = step.get("name") or f"{number}. {tool.name}"
    return tool_step(name, tool, args, target_id if tool.kind == "workspace" else None)
