"""Have a model work towards a goal with tools (S1; runs.md); the loop is `runs.agent.loop`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from decisions.errors import InvalidInput
from decisions.identity.principals import Principal
from runners.invocation.step_call import StepCall
from runners.tools.base import Closed
from runners.tools.registry import get_tool
from runs.agent.budget import usage_of
from runs.agent.first_call import planned_call
from runs.agent.journal_view import PAGE, TURN, NextStep
from runs.agent.loop import (
    MAX_STEPS,
    do_call,
    do_turn,
    first_turn,
    last_turn,
    next_step,
    read_page_state,
)
from runs.agent.tools import AGENT_TOOLS, resolve_tools, resolve_workspace
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.outcomes import run_error
from runs.task_templates.registry import register

RECOVERIES = {
    "BUDGET_EXHAUSTED": "Ask for less at once, or raise maxSteps or the limits of agent runs.",
    "SCHEMA_VALIDATION_FAILED": "Make outputSchema simpler, or the goal clearer about it.",
    "MODEL_REFUSED": "Word the goal differently, or use another model.",
}


class AgentTaskInputs(Closed):
    """What to achieve, and with what."""

    goal: str = Field(min_length=1, max_length=100_000, description="What the user wants.")
    start_url: str | None = Field(
        default=None, alias="startUrl", max_length=4096, description="The page to begin on."
    )
    context: str | None = Field(
        default=None, max_length=200_000, description="What the agent should know beforehand."
    )
    max_steps: int = Field(
        default=MAX_STEPS,
        alias="maxSteps",
        ge=1,
        le=100,
        description="Turns of the model; in the last one it can only complete.",
    )
    target_id: str | None = Field(
        default=None,
        alias="targetId",
        min_length=1,
        max_length=64,
        description="The workspace that its tools work in; the default one unless said.",
    )
    tools: list[str] | None = Field(
        default=None,
        max_length=300,
        description="Names of the tools that it may use, those of runners as bash.exec, or as"
        " bash.exec@TARGET for one runner; all that the caller may unless said.",
    )
    output_schema: dict[str, Any] | None = Field(
        default=None,
        alias="outputSchema",
        description="JSON Schema of the output; the same as options.outputSchema.",
    )
    task_id: str | None = Field(
        default=None,
        alias="taskId",
        min_length=1,
        max_length=64,
        description="The conversation that this run answers in.",
    )


@register
class AgentTask(TaskTemplate):
    """Steps are appended as the model asks for them; a call that fails is an answer to it."""

    template_id = "agent_task"
    name = "Agent task"
    description = (
        "Have a language model work towards a goal: it reads and acts with tools, asks the user"
        " where it has to, and answers, in the shape of options.outputSchema where one is given."
        " Calls that policy holds back wait for a person; the agent cannot confirm them."
    )
    inputs_model: ClassVar[type[BaseModel]] = AgentTaskInputs
    example_inputs = ({"goal": "List the scenes of the game and say which one is the longest."},)
    result_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "answer": {"type": "string"},
            "output": {"description": "As options.outputSchema says."},
            "verification": {
                "type": "object",
                "properties": {
                    "pass": {"type": "boolean"},
                    "score": {"type": "number"},
                    "missingFields": {"type": "array", "items": {"type": "string"}},
                    "typeMismatches": {"type": "array", "items": {"type": "string"}},
                    "reason": {"type": "string"},
                },
                "required": ["pass", "score", "missingFields", "typeMismatches", "reason"],
            },
            "usage": {"type": "object"},
        },
        "required": ["answer", "verification", "usage"],
    }
    uses_browser = True
    shares_page = True
    stops_at_failed_step = False
    step_timeout_ms = 600_000
    limits = {"maxSteps": 100}

    def complete_inputs(self, inputs: Mapping[str, Any], principal: Principal) -> Mapping[str, Any]:
        """Return the inputs with the workspace and the tools that the run has from now on.

        Raises:
            InvalidInput: The goal is blank; a workspace or a tool is named that is not there for
                this caller.
        """
        if not inputs["goal"].strip():
            raise InvalidInput("inputs.goal: it is blank.")
        target = resolve_workspace(principal, inputs.get("targetId"))
        tools = resolve_tools(principal, target, inputs.get("tools"))
        return {**inputs, "tools": tools, **({"targetId": target} if target else {})}

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the model's first turn."""
        return [_plan(first_turn(inputs))]

    def next_step(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> StepPlan | None:
        """Return the next turn, or the next call of the last one."""
        found = next_step(inputs, steps)
        return None if found is None else _plan(found)

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Ask the model, make a call, or look at the page."""
        if step.input["kind"] == TURN:
            return await do_turn(step.input, ctx.inputs, ctx.earlier, ctx)
        if step.input["kind"] == PAGE:
            return await read_page_state(step.input, ctx.earlier, ctx)
        return await do_call(step.input, ctx.inputs, ctx.earlier, ctx)

    def starts_before_commit(self, step_input: Mapping[str, Any]) -> bool:
        """A turn is asked for while its beginning is written, and what the call before left."""
        return bool(step_input["kind"] == TURN)

    def first_call(
        self, step_input: Mapping[str, Any], inputs: Mapping[str, Any]
    ) -> StepCall | None:
        """Return the call that a step of this kind is."""
        return planned_call(step_input, inputs)

    def uses_shared_page(self, step_input: Mapping[str, Any]) -> bool:
        """Nothing is done again to have a lost page back: the model is told, and sees to it."""
        return False

    def needs_browser(self, step_input: Mapping[str, Any]) -> bool:
        """Tell whether a step calls a tool that works with a browser, or looks at a page."""
        if step_input["kind"] == TURN or step_input.get("tool") in AGENT_TOOLS:
            return False
        if step_input["kind"] == PAGE:
            return True
        tool = get_tool(step_input["tool"])  # runners' tools are never called as one of ours
        return tool is not None and tool.uses_browser

    def prefers_sync(self, inputs: Mapping[str, Any]) -> bool:
        """Models take their time."""
        return False

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the model's answer, or why there is none."""
        last, used = last_turn(steps), usage_of(steps)
        if last.error is not None:
            return _failed_turn(next(step for step in steps if step is last), used)
        if (lost := steps[-1]).error is not None and lost.input["kind"] == PAGE:
            return _failed_turn(lost, used)
        said = last.output or {}
        completion = said.get("completion")
        if completion is not None and completion["verification"]["pass"]:
            status = RunStatus.PARTIAL_SUCCESS if last.input.get("last") else RunStatus.SUCCEEDED
            late = ["The turns were used up: this is what there was by then."]
            return Conclusion(
                status,
                {**completion, "usage": used},
                summary=completion["answer"][:500],
                warnings=late if last.input.get("last") else (),
            )
        told_of: dict[str, Any] = {"saidLast": str(said.get("content", ""))[:2000]}
        if completion is not None:
            answer = completion["answer"][:2000]
            told_of = {"verification": completion["verification"], "answer": answer}
        if any(step.input.get("repairs") for step in steps) and completion is not None:
            return _failed(
                "SCHEMA_VALIDATION_FAILED",
                "The answer does not fit outputSchema, nor did the one after it.",
                used,
                **told_of,
            )
        if said.get("stop") == "refusal":
            return _failed("MODEL_REFUSED", "The model refused to go on.", used)
        limits = f"{used['turns']} turns and {used['inputTokens'] + used['outputTokens']} tokens"
        which = "no answer" if completion is None else "no answer that fits outputSchema"
        told = f"There was {which} after {limits}."
        return _failed("BUDGET_EXHAUSTED", told, used, **told_of)


def _plan(found: NextStep) -> StepPlan:
    return StepPlan(found.name, found.input, found.effect)


def _failed_turn(turn: StepView, used: Mapping[str, Any]) -> Conclusion:
    error = run_error(turn, usage=dict(used))
    if error["details"].get("causeCode") == "MODEL_UNAVAILABLE":  # mechanisms 23
        error["errorCode"] = "EXECUTION_ERROR"
    summary = str(error.get("message", ""))[:500]
    return Conclusion(RunStatus.FAILED, error=error, summary=summary)


def _failed(cause: str, message: str, used: Mapping[str, Any], **details: Any) -> Conclusion:
    error = {
        "errorCode": "EXECUTION_ERROR",
        "message": message,
        "details": {"causeCode": cause, "usage": dict(used), **details},
        "retryable": False,
        "recovery": RECOVERIES[cause],
    }
    return Conclusion(RunStatus.FAILED, error=error, summary=message)
