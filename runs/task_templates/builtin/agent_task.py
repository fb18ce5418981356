"""The template `agent_task`: a model works towards a goal with tools (S1). Its loop is
`runs.agent.loop`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from django.utils.translation import gettext_noop as _
from pydantic import AfterValidator, BaseModel, Field

from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from runners.invocation.planned_call import StepCall
from runners.paired_browser.choice import with_paired_browser
from runners.targets.targets import Caller
from runners.tools.base import Closed
from runners.tools.registry import get_tool
from runs.agent.answer_check import is_refused
from runs.agent.budget import usage_of
from runs.agent.call_events import planned_call
from runs.agent.journal_view import PAGE, SUMMARY, TURN
from runs.agent.loop import (
    MAX_STEPS,
    do_call,
    do_turn,
    first_step,
    last_turn,
    newest_completion,
    next_step,
    read_page_state,
    summarize,
)
from runs.agent.tools import AGENT_TOOLS, resolve_tools, resolve_workspace
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.outcomes import run_error
from runs.task_templates.page_inputs import with_scheme
from runs.task_templates.paired_browser import SelectedClientId
from runs.task_templates.registry import register
from runs.task_templates.subjects import first_words

RECOVERIES = {
    "BUDGET_EXHAUSTED": "Ask for less at once, or raise maxSteps or the limits of agent runs.",
    "SCHEMA_VALIDATION_FAILED": "Make outputSchema simpler, or the goal clearer about it.",
    "MODEL_REFUSED": "Word the goal differently, or use another model.",
}


class AgentTaskInputs(Closed):
    """The inputs of `agent_task`: the goal, and the means."""

    goal: str = Field(min_length=1, max_length=100_000, description=_("What the user wants."))
    start_url: Annotated[str, AfterValidator(with_scheme)] | None = Field(
        default=None,
        alias="startUrl",
        max_length=4096,
        description=_("The page to begin on: the run opens it before the model's first turn."),
    )
    context: str | None = Field(
        default=None, max_length=200_000, description=_("What the agent should know beforehand.")
    )
    max_steps: int = Field(
        default=MAX_STEPS,
        alias="maxSteps",
        ge=1,
        le=100,
        description=_("Turns of the model; in the last one it can only complete."),
    )
    target_id: str | None = Field(
        default=None,
        alias="targetId",
        min_length=1,
        max_length=64,
        description=_(
            "The workspace that its tools work in; by default the caller's default one."
            " plugin, or a plc_… id, is the caller's paired browser, as selectedClientId."
        ),
    )
    selected_client_id: SelectedClientId = None
    tools: list[str] | None = Field(
        default=None,
        max_length=300,
        description=_(
            "Names of the tools that it may use, those of runners as bash.exec, or as"
            " bash.exec@TARGET for one runner; by default all that the caller may use."
        ),
    )
    output_schema: dict[str, Any] | None = Field(
        default=None,
        alias="outputSchema",
        description=_("JSON Schema of the output; the same as options.outputSchema."),
    )
    task_id: str | None = Field(
        default=None,
        alias="taskId",
        min_length=1,
        max_length=64,
        description=_("The task (conversation) that this run answers in."),
    )


@register
class AgentTask(TaskTemplate):
    """Each turn of the model and each call is a step, appended when the one before has ended.

    A failed call does not end the run: the model gets the error as the call's result.
    """

    template_id = "agent_task"
    name = _("Agent task")
    description = _(
        "Have a language model work towards a goal: it reads and acts with tools, asks the user"
        " where it has to, and answers, in the shape of options.outputSchema where one is given."
        " Calls that policy wants confirmed wait for a person; the agent cannot confirm them."
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
                    "pass": {
                        "type": ["boolean", "null"],
                        "description": "Whether output fits options.outputSchema; null without"
                        " one. Whether the goal was reached is not verified.",
                    },
                    "score": {"type": ["number", "null"]},
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
        """Return the inputs with the workspace and the tools, fixed for the whole run.

        Raises:
            InvalidInput: The goal is blank, or the caller has no such workspace or tool.
            TargetNotFound, NoBrowserPaired: As `paired_browser.choice.with_paired_browser`.
        """
        if not inputs["goal"].strip():
            raise InvalidInput("inputs.goal: it is blank; say what the agent is to do.")
        inputs = with_paired_browser(Caller.of(principal), inputs)
        target = resolve_workspace(principal, inputs.get("targetId"))
        tools = resolve_tools(principal, target, inputs.get("tools"))
        return {**inputs, "tools": tools, **({"targetId": target} if target else {})}

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return the first words of the goal."""
        return first_words(inputs["goal"])

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the opening of startUrl, or the model's first turn."""
        return [first_step(inputs)]

    def next_step(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> StepPlan | None:
        """Return the next turn, call or reading of the page; None if the run has ended."""
        return next_step(inputs, steps)

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Send the messages to the model, make a call, or read the page."""
        if step.input["kind"] == TURN:
            return await do_turn(step.input, ctx.shown_inputs, ctx.earlier, ctx)
        if step.input["kind"] == SUMMARY:
            return await summarize(step.input, ctx.shown_inputs, ctx.earlier, ctx)
        if step.input["kind"] == PAGE:
            return await read_page_state(step.input, ctx.earlier, ctx)
        return await do_call(step.input, ctx.inputs, ctx.earlier, ctx)

    def starts_before_commit(self, step_input: Mapping[str, Any]) -> bool:
        """A turn of the model has no effect, so it may be prepared before the commit."""
        return bool(step_input["kind"] == TURN)

    def first_call(
        self, step_input: Mapping[str, Any], inputs: Mapping[str, Any]
    ) -> StepCall | None:
        """Return the tool call that a step is, if it is one."""
        return planned_call(step_input, inputs)

    def uses_shared_page(self, step_input: Mapping[str, Any]) -> bool:
        """No step is repeated to restore a lost page: the model gets the error and decides."""
        return False

    def needs_browser(self, step_input: Mapping[str, Any]) -> bool:
        """Return whether a step calls a tool that needs a browser, or reads the page."""
        if step_input["kind"] in (TURN, SUMMARY) or step_input.get("tool") in AGENT_TOOLS:
            return False
        if step_input["kind"] == PAGE:
            return True
        tool = get_tool(step_input["tool"])  # a remote tool never has a local tool's name here
        return tool is not None and tool.uses_browser

    def prefers_sync(self, inputs: Mapping[str, Any]) -> bool:
        """Never: agent runs are usually long."""
        return False

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the model's answer, or why there is none."""
        usage = usage_of(steps)
        if (ended := _ended_without_reply(steps, usage)) is not None:
            return ended
        last = last_turn(steps)
        reply = last.output or {}
        completion = reply.get("completion")
        if completion is not None and not is_refused(completion):
            return _answered(completion, usage, is_last_turn=bool(last.input.get("last")))
        details: dict[str, Any] = {"saidLast": str(reply.get("content", ""))[:2000]}
        if (newest := newest_completion(steps)) is not None:
            answer = newest["answer"][:2000]
            details = {"verification": newest["verification"], "answer": answer}
        is_second_try = completion is not None or last.input.get("completes")
        if last.input.get("repairs") and is_second_try:
            return _failed(
                "SCHEMA_VALIDATION_FAILED",
                "Neither the answer nor the corrected answer fits outputSchema.",
                usage,
                **details,
            )
        if reply.get("stop") == "refusal":
            return _failed("MODEL_REFUSED", "The model refused to continue.", usage)
        limits = f"{usage['turns']} turns and {usage['inputTokens'] + usage['outputTokens']} tokens"
        which = "no answer" if newest is None else "no answer that fits outputSchema"
        return _failed("BUDGET_EXHAUSTED", f"There was {which} after {limits}.", usage, **details)


def _ended_without_reply(steps: Sequence[StepView], usage: Mapping[str, Any]) -> Conclusion | None:
    """Return the conclusion of a run whose last step, a turn or the page, failed, or that timed out
    before its first turn.
    """
    if (page := steps[-1]).error is not None and page.input["kind"] == PAGE:
        return _failed_step(page, usage)
    turns = [step for step in steps if step.input["kind"] == TURN]
    if not turns:
        return Conclusion(RunStatus.FAILED)
    return _failed_step(turns[-1], usage) if turns[-1].error is not None else None


def _answered(
    completion: Mapping[str, Any], usage: Mapping[str, Any], *, is_last_turn: bool
) -> Conclusion:
    warning = "The turns were used up: this is the answer that the model had by then."
    return Conclusion(
        RunStatus.PARTIAL_SUCCESS if is_last_turn else RunStatus.SUCCEEDED,
        {**completion, "usage": usage},
        summary=completion["answer"][:500],
        warnings=[warning] if is_last_turn else (),
    )


def _failed_step(step: StepView, usage: Mapping[str, Any]) -> Conclusion:
    error = run_error(step, usage=dict(usage))
    if error["details"].get("causeCode") == "MODEL_UNAVAILABLE":  # not a defect of the step
        error["errorCode"] = "EXECUTION_ERROR"
    summary = str(error.get("message", ""))[:500]
    return Conclusion(RunStatus.FAILED, error=error, summary=summary)


def _failed(cause: str, message: str, usage: Mapping[str, Any], **details: Any) -> Conclusion:
    error = {
        "errorCode": "EXECUTION_ERROR",
        "message": message,
        "details": {"causeCode": cause, "usage": dict(usage), **details},
        "retryable": False,
        "recovery": RECOVERIES[cause],
    }
    return Conclusion(RunStatus.FAILED, error=error, summary=message)
