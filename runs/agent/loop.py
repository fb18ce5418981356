"""The agent's loop: decide which step comes next, and perform a step.

    startUrl is opened, and its page read, if the run has one
    a turn of the model  ->  one step per requested call, in order; after each one that may have
                             changed the page, a step that reads the page
                         ->  the next turn
                         ->  attempt_completion, or an answer without a call: the run ends

The next step is decided from the journal alone, so any worker can continue the run after its last
completed step. A turn has no side effect and may be repeated. A call has its tool's effect: if that
is `once` and the worker is lost during the call, the call fails with an unknown effect, and the
model gets that as the call's result.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from django.conf import settings

from decisions.foundation.infra.threads import in_long_thread
from decisions.foundation.security.masking import WholeSecrets
from decisions.foundation.validation.foreign_schema import ForeignSchema
from decisions.foundation.validation.storable import storable, storable_text
from runners.actions.catalogue import ACTIONS, TASK_START
from runners.errors import ToolFailed
from runners.llm.base import Delta, Done, LlmCall, Message, Restarted, ToolSpec
from runners.metrics import model_turn
from runners.remote_tools.model_facing import ModelFacingTool
from runners.tools.base import Effect
from runners.tools.registry import get_tool
from runs.agent.answer_check import completion_of, is_refused
from runs.agent.budget import counts_of, is_budget_exhausted, usage_of
from runs.agent.call_events import (
    end_event_data,
    ending_event,
    planned_call,
    refused_event_data,
    start_event_data,
)
from runs.agent.call_validation import validate_calls
from runs.agent.history import count_ended_takeovers
from runs.agent.journal_view import (
    CALL,
    OPENING,
    PAGE,
    TAKEOVERS_ENDED,
    TODAY,
    TURN,
    Journal,
    calls_since,
    opens_start_url,
    pages_of,
    today_in,
    turns_of,
)
from runs.agent.output_schema import check_output_schema
from runs.agent.pages.page_state import held_up_mark, page_to_read, perform_action, read_tab
from runs.agent.pages.pictures import load_picture
from runs.agent.prompt import (
    LAST_TURN,
    REPAIR_TURNS,
    build_messages,
    error_for_model,
    message_bytes,
    size_of,
    today_of,
)
from runs.agent.remote_tools import load_remote_tools, runner_arguments
from runs.agent.results import fit_result, read_more
from runs.agent.summary import do_summary, summary_step
from runs.agent.tools import (
    AGENT_TOOLS,
    ASK,
    COMPLETE,
    READ_RESULT,
    local_tool_names,
    suggestions_of,
    tool_specs,
)
from runs.models import Run
from runs.steps import StepContext, StepPlan, StepView

OPENING_CALL = "open_start_url"  # the id of the call that the run itself makes
MAX_STEPS = 30  # turns of the model; the default of the input maxSteps


def first_step(inputs: Mapping[str, Any]) -> StepPlan:
    """Return the first step of an agent run: the call that opens startUrl, or the first turn.

    During a rolling upgrade it is always a turn: older workers cannot go on after such a call.
    """
    if opens_start_url(inputs) and not settings.ROLLING_UPGRADE:
        args = {"url": inputs["startUrl"]}
        return _call({"id": OPENING_CALL, "name": TASK_START.name, "args": args}, OPENING)
    return _turn(1, inputs)


def next_step(inputs: Mapping[str, Any], journal: Journal) -> StepPlan | None:
    """Return the next step, or None if the run has ended."""
    turns = turns_of(journal)
    last = turns[-1] if turns else None
    if last is not None and not last.succeeded:
        return None
    number = OPENING if last is None else last.input["turn"]
    requested = [] if last is None else (last.output or {})["calls"]
    if any(not page.succeeded for page in pages_of(journal, number).values()):
        return None
    if (page := page_to_read(journal, number, is_turn_over=False)) is not None:
        return _page(page, number)
    made = calls_since(journal, number)
    for call in requested:
        if "refused" not in call and call["name"] != COMPLETE and call["id"] not in made:
            return _call(call, number)
    if (page := page_to_read(journal, number, is_turn_over=True)) is not None:
        return _page(page, number)
    return _after_calls(last, journal, inputs)


def _after_calls(
    last: StepView | None, journal: Journal, inputs: Mapping[str, Any]
) -> StepPlan | None:
    """Return the step after a turn's calls; `last` is None if they opened startUrl."""
    if last is None:
        return _turn(1, inputs)
    following = _next_turn(last, journal, inputs)
    return following if following is None else summary_step(journal) or following


def _page(page: tuple[int, str], turn: int) -> StepPlan:
    tab_id, call_id = page
    return StepPlan("page", {"kind": PAGE, "turn": turn, "tabId": tab_id, "after": call_id})


def _next_turn(last: StepView, journal: Journal, inputs: Mapping[str, Any]) -> StepPlan | None:
    turns, reply = turns_of(journal), last.output or {}
    completion = reply.get("completion")
    if reply["stop"] == "refusal" or is_budget_exhausted(usage_of(journal)):
        return None
    repairs = int(last.input.get("repairs", 0))
    if completion is not None and (repairs or not is_refused(completion)):
        return None
    if _has_to_complete(last.input):
        return None if completion is None else _turn(len(turns) + 1, inputs, repairs=1)
    if completion is not None or repairs:
        repairs += 1
    return _turn(len(turns) + 1, inputs, repairs=repairs)


def _turn(number: int, inputs: Mapping[str, Any], *, repairs: int = 0) -> StepPlan:
    """Return a turn; `repairs` is its number since an answer that did not fit the schema."""
    step_input: dict[str, Any] = {"kind": TURN, "turn": number}
    is_last = number >= inputs.get("maxSteps", MAX_STEPS)
    if repairs:
        step_input["repairs"] = repairs
        if is_last or repairs > REPAIR_TURNS:
            step_input["completes"] = True
    elif is_last:
        step_input["last"] = True
    return StepPlan(f"turn {number}", step_input)


def _has_to_complete(step: Mapping[str, Any]) -> bool:
    """Return whether the model can only complete in a turn."""
    return bool(step.get("last") or step.get("completes"))


def _call(call: Mapping[str, Any], turn: int) -> StepPlan:
    step_input = {
        "kind": CALL,
        "turn": turn,
        "tool": call["name"],
        "args": call["args"],
        "toolCallId": call["id"],
    }
    if (there := call.get("elsewhere")) is not None:
        step_input |= {"args": runner_arguments(call), "elsewhere": there}
        return StepPlan(there["tool"], step_input, Effect.ONCE)
    tool = get_tool(call["name"]) if call["name"] not in AGENT_TOOLS else None
    return StepPlan(call["name"], step_input, tool.effect if tool is not None else Effect.READ)


# --- a turn of the model ----------------------------------------------------------------------


async def do_turn(
    step: Mapping[str, Any], inputs: Mapping[str, Any], journal: Journal, ctx: StepContext
) -> dict[str, Any]:
    """Send the messages to the model, and return {content, calls, stop, usage, completion?}.

    Raises:
        ToolFailed: The model's server is unavailable, or its reply is invalid.
        InvalidInput: The output schema, stored by an older version, takes too long to apply.
    """
    start: dict[str, Any] = {}
    if step["turn"] == 1:
        start = await ctx.query_run(_start_of_run)
        if not calls_since(journal, OPENING):
            ctx.emit("statusUpdate", {"status": "running"})
    today = start.get(TODAY) or today_in(journal)
    if ctx.attempt_number > 1:  # readers discard the deltas that a lost worker sent
        ctx.emit("chatDelta", {"content": "", "restarted": True})
    schema, only = inputs.get("outputSchema"), COMPLETE if _has_to_complete(step) else ""
    measured = None if schema is None else check_output_schema(schema)
    remote = await load_remote_tools(inputs["tools"], ctx, taken=local_tool_names())
    tools = tool_specs(inputs["tools"], remote, schema)
    note = LAST_TURN if only else ""
    history = await ctx.message_history()
    size, picture = message_bytes(tools), await load_picture(journal, ctx)
    messages = build_messages(
        inputs, journal, history=history, today=today, size=size, picture=picture, note=note
    )
    await ctx.check_lease()  # the run may have been canceled in between: then nothing is sent
    try:
        with model_turn() as record_tokens:
            calls, done = await _stream_reply(messages, tools, ctx, only_tool=only)
            record_tokens(done.usage.input_tokens, done.usage.output_tokens)
    except ToolFailed as failed:
        error = error_for_model(failed.as_dict())
        ctx.emit("structuredOutput", {"status": "error", "error": error})
        raise
    validated = validate_calls(calls, done, *_offered(tools, remote, only))
    for call in validated:
        if "refused" in call:
            ctx.emit("toolUsed", refused_event_data(call))
    reply = {
        "content": storable_text(done.content),
        "stop": done.stop,
        "usage": counts_of(done.usage),
        "context": {"bytes": size_of(messages), "limit": size},
        "calls": validated,
    }
    return reply | start | await _completion(reply, measured, ctx)


def _start_of_run(run: Run) -> dict[str, Any]:
    """Return what the first turn records for those after it."""
    return {TAKEOVERS_ENDED: count_ended_takeovers(run), TODAY: today_of(run)}


def _offered(
    tools: list[ToolSpec], remote: Mapping[str, ModelFacingTool], only: str
) -> tuple[set[str], Mapping[str, ModelFacingTool]]:
    """Return the names of the tools that may be called in a turn, and the remote ones."""
    return ({only}, {}) if only else ({tool.name for tool in tools}, remote)


async def summarize(
    step: Mapping[str, Any], inputs: Mapping[str, Any], journal: Journal, ctx: StepContext
) -> dict[str, Any]:
    """Let the model summarize its oldest turns; return {summary, upTo, usage}.

    Raises:
        ToolFailed: As `do_turn`; the run goes on without the summary.
    """
    remote = await load_remote_tools(inputs["tools"], ctx, taken=local_tool_names())
    tools = tool_specs(inputs["tools"], remote, inputs.get("outputSchema"))
    history, today = await ctx.message_history(), today_in(journal)
    messages = build_messages(
        inputs, journal, history=history, today=today, size=message_bytes(tools)
    )
    await ctx.check_lease()
    return await do_summary(step, messages, tools, ctx)


async def _stream_reply(
    messages: list[Message], tools: list[ToolSpec], ctx: StepContext, *, only_tool: str
) -> tuple[list[LlmCall], Done]:
    # Imported here: a process that runs no agent loads no model library.
    from runners.llm.gateway import get_gateway

    gateway = await get_gateway(settings.LLM)
    calls: list[LlmCall] = []
    key = WholeSecrets([str(settings.LLM.api_key or "")])  # its server may output it
    chat = gateway.stream_chat(messages=messages, tools=tools, only_tool=only_tool)
    async with aclosing(chat) as parts:
        async for part in parts:
            content = key.add(part.content) if isinstance(part, Delta) else key.rest()
            if isinstance(part, Restarted):
                ctx.emit("chatDelta", {"content": "", "restarted": True})
            elif content:
                ctx.emit("chatDelta", {"content": content})
            if isinstance(part, LlmCall):
                calls.append(part)
            elif isinstance(part, Done):
                done = part
    ctx.emit("chatDelta", {"content": "", "finished": True})
    return calls, done


async def _completion(
    reply: Mapping[str, Any], schema: ForeignSchema | None, ctx: StepContext
) -> dict[str, Any]:
    """Return {completion}, the verified answer of a turn, or {} if the turn gives no answer."""
    calls, answer, output = reply["calls"], reply["content"], None
    if calls:
        if calls[0]["name"] != COMPLETE or "refused" in calls[0]:
            return {}
        answer, output = calls[0]["args"]["result"], calls[0]["args"].get("output")
    elif reply["stop"] != "stop" or not answer.strip():
        return {}
    if schema is None:
        return {"completion": completion_of(answer, output, None)}
    completion = await in_long_thread(completion_of, answer, output, schema)
    fits = not is_refused(completion)
    data = (
        {"output": completion["output"]}
        if fits
        else {
            "error": {
                "code": "SCHEMA_VALIDATION_FAILED",
                "message": "The output does not fit the schema.",
            }
        }
    )
    ctx.emit("structuredOutput", {"status": "ok" if fits else "error", **data})
    return {"completion": completion}


# --- a call -------------------------------------------------------------------------------------


async def do_call(
    step: Mapping[str, Any], inputs: Mapping[str, Any], journal: Journal, ctx: StepContext
) -> dict[str, Any]:
    """Make a call, and return its result for the model: {ok, result | error, …} (S1 §5).

    A failure of the tool is a result, not an exception.
    """
    if step["turn"] == OPENING:
        ctx.emit("statusUpdate", {"status": "running"})
    # The event of a planned call is written together with the step's start.
    if not ctx.is_resumed and planned_call(step, inputs) is None:
        ctx.emit("toolUsed", start_event_data(step))
    with ending_event(step, ctx.emit):
        output = await _output_of(step, inputs, journal, ctx)
    if step["tool"] not in ACTIONS:
        output |= await held_up_mark(journal, ctx)
    ctx.emit("toolUsed", end_event_data(step, output))
    return output


async def _output_of(
    step: Mapping[str, Any], inputs: Mapping[str, Any], journal: Journal, ctx: StepContext
) -> dict[str, Any]:
    if step["tool"] == ASK:
        answer = ctx.ask_user(step["args"]["question"], suggestions_of(step["args"]))
        return {"ok": answer is not None, **_user_answer(answer)}
    if step["tool"] == READ_RESULT:
        return await read_more(step["args"], ctx)
    return await _call_tool(step, inputs, journal, ctx)


async def read_page_state(
    step: Mapping[str, Any], journal: Journal, ctx: StepContext
) -> dict[str, Any]:
    """Read the page, and return its state for the model.

    Raises:
        PagePrepFailed: As `read_tab`.
    """
    output = await read_tab(step, journal, ctx)
    if not output["ok"]:
        return {**output, "error": error_for_model(output["error"])}
    fitted: dict[str, Any] = storable({**output, **await fit_result(output["result"], ctx)})
    return fitted


def _user_answer(answer: str | None) -> dict[str, Any]:
    if answer is not None:
        return {"result": {"answer": answer}}
    message = "The user did not answer in time: do without, or complete with what you have."
    return {"error": {"code": "NO_ANSWER", "message": message}}


async def _call_tool(
    step: Mapping[str, Any], inputs: Mapping[str, Any], journal: Journal, ctx: StepContext
) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if (call := planned_call(step, inputs)) is None:
        result, more = await perform_action(step, journal, ctx)
    else:
        result = await ctx.attempt(
            call.tool, call.args, target_id=call.target_id, remote=call.remote
        )
    if not result.ok:
        return {"ok": False, "error": error_for_model(result.error or {}), **more}
    output = storable(result.output)
    if "elsewhere" in step:  # a runner's output has no fields that we know
        return {"ok": True, **await fit_result(output, ctx, keeps=())}
    warnings = {"warnings": texts} if (texts := output.pop("warnings", None)) else {}
    return {"ok": True, **await fit_result(output, ctx), **warnings, **more}


def last_turn(journal: Journal) -> StepView:
    """Return the model's last turn."""
    return turns_of(journal)[-1]


def newest_completion(journal: Journal) -> Mapping[str, Any] | None:
    """Return the model's last answer, which may not fit the output schema, or None."""
    outputs = [turn.output or {} for turn in turns_of(journal)]
    completions = [output["completion"] for output in outputs if "completion" in output]
    return completions[-1] if completions else None
