"""The template `session_action`: one browser action that an MCP host performs in a session's task.

Only `runs.calls.direct.browser_actions` submits it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, Field

from decisions.identity.principals import Principal
from runners.actions.catalogue import ACTIONS, OBSERVE, SWITCH_TAB, TASK_START, TASK_STOP
from runners.actions.errors import InvalidTaskTab, TaskTabClosed
from runners.actions.retries import with_retry
from runners.paired_browser.choice import with_paired_browser
from runners.targets.targets import Caller
from runners.tools.base import Closed, Effect, ToolResult
from runs.agent.call_events import end_event_data, ending_event, start_event_data
from runs.agent.history import count_ended_takeovers
from runs.agent.journal_view import TAKEOVERS_ENDED
from runs.agent.pages.page_state import PERSON_HAD_PAGE
from runs.agent.results import fit_result
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.paired_browser import SelectedClientId
from runs.task_templates.registry import register
from runs.task_templates.subjects import host_of, subject_line

ACTION, PAGE = "action", "page"  # the kinds of steps
RESULT_BYTES = 16 * 1024  # of a result; the host's model is not the one that the agent has
MASKS_TEXT = "masksText"
TEXT = ("args", "text")  # the path of what is typed
HOST_CALL = "host"  # the id of the call in the task's events
# Of a run's error, where the action's error does not have them.
_ERROR: Mapping[str, Any] = {
    "details": {},
    "retryable": False,
    "recovery": "Look at the page as it is now (browser_observe), then decide again.",
}


class SessionActionInputs(Closed):
    """The action, and what the host knew about the page when it chose it."""

    action: str = Field(min_length=1, max_length=64)
    args: dict[str, Any]
    tab_id: int | None = Field(default=None, alias="tabId", description="The session's last tab.")
    url: str | None = Field(default=None, description="The last URL of that tab.")
    selected_client_id: SelectedClientId = None
    times_given_back: int = Field(
        default=0, alias="timesGivenBack", description="Takeovers that had ended by then."
    )
    masks_text: bool = Field(
        default=False,
        alias="masksText",
        description="The text is for a secret field, so it is a secret input.",
    )


@register
class SessionAction(TaskTemplate):
    """The action is a step, and so is the observation of the page after it.

    The run of a failed action is failed, and its result has the page. If a person had the page
    meanwhile, an action that changes the page is not performed: the host chose it for the page as
    it was before.
    """

    template_id = "session_action"
    name = _("Browser action")
    description = "Perform one browser action of an MCP host in its browser session."
    inputs_model: ClassVar[type[BaseModel]] = SessionActionInputs
    example_inputs = ({"action": "task_start", "args": {"url": "https://example.com/"}},)
    result_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
    }
    is_listed = False
    uses_browser = True
    shares_page = True
    stops_at_failed_step = False
    step_timeout_ms = 60_000

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return the action and the host of its page."""
        url = inputs["args"].get("url") or inputs.get("url") or ""
        return subject_line(inputs["action"], host_of(url) if isinstance(url, str) else "")

    def secret_paths(self, inputs: Mapping[str, Any]) -> set[tuple[str | int, ...]]:
        """Return the path of a text that is typed into a secret field."""
        return {TEXT} if inputs.get(MASKS_TEXT) else set()

    def complete_inputs(self, inputs: Mapping[str, Any], principal: Principal) -> Mapping[str, Any]:
        """Return the inputs with the caller's paired browser, if the session acts in one.

        Raises:
            TargetNotFound, NoBrowserPaired: As `paired_browser.choice.with_paired_browser`.
        """
        return with_paired_browser(Caller.of(principal), inputs)

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the step of the action and, if it may change the page, that of the observation."""
        action = ACTIONS[inputs["action"]]
        planned = [StepPlan(action.name, {"kind": ACTION}, action.effect)]
        shows_page = action.name == SWITCH_TAB.name or action.may_change_page(inputs["args"])
        if shows_page and action.name != TASK_STOP.name:
            planned.append(StepPlan(PAGE, {"kind": PAGE}))
        return planned

    def uses_shared_page(self, step_input: Mapping[str, Any]) -> bool:
        """Never: the host decides what follows the loss of a page."""
        return False

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Perform the action, or observe the page."""
        if step.input["kind"] == PAGE:
            return await _observe(ctx)
        args = _whole_args(ctx)
        event = {"tool": ctx.inputs["action"], "args": args, "toolCallId": HOST_CALL}
        if not ctx.is_resumed:
            ctx.emit("toolUsed", start_event_data(event))
        with ending_event(event, ctx.emit):
            output = await _perform(args, ctx)
        shown = output if output["ok"] else {**output, "error": _coded(output["error"])}
        ctx.emit("toolUsed", end_event_data(event, shown))
        return output

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the action's result or error, and the page."""
        done = steps[0]
        result = dict(done.output or {"ok": False, "error": done.error or {}})
        page = steps[1].output if len(steps) > 1 else None
        if page:
            result |= page
        error = result.get("error") or {}
        outcome = "done" if result["ok"] else f"{error.get('errorCode')}: {error.get('message')}"
        url = (result.get("page") or {}).get("url")
        shown = f"; the page is {url}" if url else ""
        summary = f"{inputs['action']}: {outcome}{shown}"[:500]
        if result["ok"]:
            return Conclusion(RunStatus.SUCCEEDED, result, summary=summary)
        return Conclusion(RunStatus.FAILED, result, error={**_ERROR, **error}, summary=summary)


NO_TAB = 0
NOT_SEEN = (
    "Nothing was done: this host has not seen the session's page yet. It is below, in the tab of"
    " details.taskTabId; choose the action by it."
)


def _whole_args(ctx: StepContext) -> dict[str, Any]:
    """Return the arguments with the session's last tab where the host named none, and with the
    text that is a secret input.
    """
    args, action = dict(ctx.inputs["args"]), ACTIONS[ctx.inputs["action"]]
    if "tab_id" in action.parameters.model_fields:
        args.setdefault("tabId", ctx.inputs.get("tabId") or NO_TAB)
    if ctx.inputs.get(MASKS_TEXT):
        args["text"] = ctx.secrets[".".join(TEXT)]
    return args


async def _perform(args: Mapping[str, Any], ctx: StepContext) -> dict[str, Any]:
    action = ACTIONS[ctx.inputs["action"]]
    ended = await ctx.query_run(count_ended_takeovers)
    fields: dict[str, Any] = {TAKEOVERS_ENDED: ended, "tabId": args.get("tabId")}
    was_taken_over = ended > ctx.inputs.get(TAKEOVERS_ENDED, 0)
    if was_taken_over and action.effect != Effect.READ:
        return {"ok": False, "error": PERSON_HAD_PAGE, **fields}
    result = await with_retry(ctx.attempt, action.name, args)
    if (tab := _other_tab(result, ctx)) is not None:  # an agent has opened another tab meanwhile
        fields["tabId"] = tab
        if action.effect == Effect.READ:  # else the host chose it for a page that it has seen
            result = await with_retry(ctx.attempt, action.name, {**args, "tabId": tab})
        elif args["tabId"] == NO_TAB:
            result = replace(result, error={**(result.error or {}), "message": NOT_SEEN})
    if not result.ok:
        return {"ok": False, "error": result.error or {}, **fields, **await _new_tab(result, ctx)}
    output = result.output or {}
    fields["tabId"] = output.get("tabId", fields["tabId"])
    # An observation is bounded already, and the host gets its text as it is.
    is_whole = action.name == OBSERVE.name
    fitted = {"result": output} if is_whole else await fit_result(output, ctx, at_most=RESULT_BYTES)
    return {"ok": True, **fitted, **fields}


def _other_tab(result: ToolResult, ctx: StepContext) -> int | None:
    """Return the session's current tab, if the action failed because of its tab and the host named
    none.
    """
    error = result.error or {}
    if "tabId" in ctx.inputs["args"] or error.get("errorCode") != InvalidTaskTab.code:
        return None
    tab = (error.get("details") or {}).get("taskTabId")
    return tab if isinstance(tab, int) else None


async def _new_tab(result: ToolResult, ctx: StepContext) -> dict[str, Any]:
    """Return {newTab, tabId}: a new tab on the last URL, if the session's tab was closed."""
    url = ctx.inputs.get("url")
    is_closed = (result.error or {}).get("errorCode") == TaskTabClosed.code
    if not is_closed or url is None or ctx.inputs["action"] == TASK_STOP.name:
        return {}
    opened = await with_retry(ctx.attempt, TASK_START.name, {"url": url})
    if not opened.ok or opened.output is None:
        return {}
    return {"newTab": opened.output, "tabId": opened.output["tabId"]}


async def _observe(ctx: StepContext) -> dict[str, Any]:
    """Return {page}, the observation of the session's tab, or {} if it cannot be read."""
    tab = (ctx.earlier[0].output or {}).get("tabId", ctx.inputs.get("tabId"))
    if tab is None:
        return {}
    result = await with_retry(ctx.attempt, OBSERVE.name, {"tabId": tab})
    return {"page": result.output, TAKEOVERS_ENDED: await ctx.query_run(count_ended_takeovers)}


def _coded(error: Mapping[str, Any]) -> dict[str, Any]:
    return {"code": error.get("errorCode", "")}
