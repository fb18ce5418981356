"""The agent's loop, durable: what comes next is read from the journal alone, so whoever has the run
goes on behind the last whole step.

    a turn of the model  ->  a step for each call that it made, one after another
                         ->  a look at the page, where they may have changed it  ->  the next turn
                         ->  attempt_completion, or words alone: the end

A turn changes nothing out there and may be asked for again. A call has its tool's effect: one that
must not happen twice, and whose worker was lost, fails with an unknown effect, and the model is
told so.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from django.conf import settings

from decisions.validation.storable import storable, storable_text
from runners.actions.catalogue import ACTIONS
from runners.errors import ToolFailed
from runners.llm.base import Delta, Done, LlmCall, Message, Restarted, ToolSpec, Usage
from runners.metrics import model_turn
from runners.tools.base import Effect
from runners.tools.registry import get_tool
from runs.agent.answer_check import completion_of
from runs.agent.budget import is_budget_exhausted, usage_of
from runs.agent.call_validation import validate_calls
from runs.agent.first_call import end_event_data, planned_call, start_event_data
from runs.agent.history import times_given_back
from runs.agent.journal_view import (
    CALL,
    PAGE,
    TAKEOVERS_ENDED,
    TURN,
    AgentContext,
    Journal,
    JournalEntry,
    NextStep,
    calls_since,
    pages_of,
    turns_of,
)
from runs.agent.page_state import held_up_mark, look, perform_action, tab_to_read
from runs.agent.prompt import LAST_TURN, build_messages, error_for_model, message_bytes
from runs.agent.redaction import keep_key_whole
from runs.agent.remote_tools import load_remote_tools, runner_arguments
from runs.agent.results import fit_result, read_more
from runs.agent.tools import (
    AGENT_TOOLS,
    ASK,
    COMPLETE,
    READ_RESULT,
    agent_tool_specs,
    local_tool_names,
    suggestions_of,
    tool_specs,
)

MAX_STEPS = 30  # turns of the model, unless the inputs say


def first_turn(inputs: Mapping[str, Any]) -> NextStep:
    """Return the step that every run of the agent begins with."""
    return _turn(1, inputs)


def next_step(inputs: Mapping[str, Any], journal: Journal) -> NextStep | None:
    """Return what comes next, or None: the run is at its end."""
    turns = turns_of(journal)
    last = turns[-1]
    if not last.succeeded:
        return None
    said = last.output or {}
    made = calls_since(journal, last.input["turn"])
    for call in said["calls"]:
        if "refused" not in call and call["name"] != COMPLETE and call["id"] not in made:
            return _call(call, last.input["turn"])
    number = last.input["turn"]
    if (tab := tab_to_read(journal, number)) is not None:
        return NextStep("page", {"kind": PAGE, "turn": number, "tabId": tab})
    if number in pages_of(journal) and not pages_of(journal)[number].succeeded:
        return None
    return _next_turn(last, journal, inputs)


def _next_turn(last: JournalEntry, journal: Journal, inputs: Mapping[str, Any]) -> NextStep | None:
    turns, said = turns_of(journal), last.output or {}
    completion = said.get("completion")
    if said["stop"] == "refusal" or is_budget_exhausted(usage_of(journal)):
        return None
    if completion is not None:
        is_repaired = any(turn.input.get("repairs") for turn in turns)
        if completion["verification"]["pass"] or is_repaired:
            return None
        return _turn(len(turns) + 1, inputs, repairs=True)
    if last.input.get("last"):
        return None
    return _turn(len(turns) + 1, inputs)


def _turn(number: int, inputs: Mapping[str, Any], *, repairs: bool = False) -> NextStep:
    told: dict[str, Any] = {"kind": TURN, "turn": number}
    if repairs:
        told["repairs"] = True
    elif number >= inputs.get("maxSteps", MAX_STEPS):
        told["last"] = True
    return NextStep(f"turn {number}", told)


def _call(call: Mapping[str, Any], turn: int) -> NextStep:
    told = {
        "kind": CALL,
        "turn": turn,
        "tool": call["name"],
        "args": call["args"],
        "toolCallId": call["id"],
    }
    if (there := call.get("elsewhere")) is not None:
        told |= {"args": runner_arguments(call), "elsewhere": there}
        return NextStep(there["tool"], told, Effect.ONCE)
    tool = get_tool(call["name"]) if call["name"] not in AGENT_TOOLS else None
    return NextStep(call["name"], told, tool.effect if tool is not None else Effect.READ)


# --- a turn of the model ----------------------------------------------------------------------


async def do_turn(
    step: Mapping[str, Any], inputs: Mapping[str, Any], journal: Journal, ctx: AgentContext
) -> dict[str, Any]:
    """Ask the model, and return {content, calls, stop, usage, completion?}.

    Raises:
        ToolFailed: As the gateway does.
    """
    known: dict[str, Any] = {}
    if step["turn"] == 1:
        known = {TAKEOVERS_ENDED: await ctx.query_run(times_given_back)}
        ctx.emit("statusUpdate", {"status": "running"})
    if ctx.attempt_number > 1:  # what a lost worker told of this turn does not count
        ctx.emit("chatDelta", {"content": "", "restarted": True})
    schema, is_last = inputs.get("outputSchema"), bool(step.get("last") or step.get("repairs"))
    named = () if is_last else inputs["tools"]
    there = await load_remote_tools(named, ctx, taken=local_tool_names())
    tools = agent_tool_specs(schema, last=True) if is_last else tool_specs(named, there, schema)
    note = LAST_TURN if step.get("last") else ""
    before = await ctx.message_history()
    talk = build_messages(inputs, journal, before=before, size=message_bytes(tools), note=note)
    try:
        with model_turn() as took:
            calls, done = await _ask(talk, tools, ctx)
            took(done.usage.input_tokens, done.usage.output_tokens)
    except ToolFailed as failed:
        told = error_for_model(failed.as_dict())
        ctx.emit("structuredOutput", {"status": "error", "error": told})
        raise
    said = {
        "content": storable_text(done.content),
        "stop": done.stop,
        "usage": _usage(done.usage),
        "calls": validate_calls(calls, done, {tool.name for tool in tools}, there),
    }
    return said | known | _completion(said, schema, ctx)


async def _ask(
    talk: list[Message], tools: list[ToolSpec], ctx: AgentContext
) -> tuple[list[LlmCall], Done]:
    # Here alone: nothing of a model is loaded before an agent runs.
    from runners.llm.gateway import get_gateway

    gateway = await get_gateway(settings.LLM)
    left_ms = max(1, int(ctx.seconds_left() * 1000))
    calls: list[LlmCall] = []
    async with aclosing(
        keep_key_whole(gateway.stream_chat(messages=talk, tools=tools, timeout_ms=left_ms))
    ) as chat:
        async for part in chat:
            if isinstance(part, Delta):
                ctx.emit("chatDelta", {"content": part.content})
            elif isinstance(part, Restarted):
                ctx.emit("chatDelta", {"content": "", "restarted": True})
            elif isinstance(part, LlmCall):
                calls.append(part)
            else:
                done = part
    ctx.emit("chatDelta", {"content": "", "finished": True})
    return calls, done


def _usage(usage: Usage) -> dict[str, Any]:
    told: dict[str, Any] = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "costUsd": usage.cost_usd,
    }
    return told | ({"estimated": True} if usage.is_estimated else {})


def _completion(
    said: Mapping[str, Any], schema: Mapping[str, Any] | None, ctx: AgentContext
) -> dict[str, Any]:
    """Return the answer that a turn gives, judged; nothing where it gives none."""
    calls, answer, output = said["calls"], said["content"], None
    if calls:
        if calls[0]["name"] != COMPLETE or "refused" in calls[0]:
            return {}
        answer, output = calls[0]["args"]["result"], calls[0]["args"].get("output")
    elif said["stop"] != "stop" or not answer.strip():
        return {}
    completion = completion_of(answer, output, schema)
    if schema is not None:
        fits = completion["verification"]["pass"]
        told = (
            {"output": completion["output"]}
            if fits
            else {
                "error": {
                    "code": "SCHEMA_VALIDATION_FAILED",
                    "message": "It does not fit the schema.",
                }
            }
        )
        ctx.emit("structuredOutput", {"status": "ok" if fits else "error", **told})
    return {"completion": completion}


# --- a call -------------------------------------------------------------------------------------


async def do_call(
    step: Mapping[str, Any], inputs: Mapping[str, Any], journal: Journal, ctx: AgentContext
) -> dict[str, Any]:
    """Make a call, and return what the model is told of it: {ok, result | error, …} (S1 §5); a
    failure is one of its answers.
    """
    if not ctx.is_resumed and planned_call(step, inputs) is None:  # else told with the step's start
        ctx.emit("toolUsed", start_event_data(step))
    if step["tool"] == ASK:
        answer = ctx.ask_user(step["args"]["question"], suggestions_of(step["args"]))
        left = {"ok": answer is not None, **_answer(answer)}
    elif step["tool"] == READ_RESULT:
        left = await read_more(step["args"], ctx)
    else:
        left = await _use(step, inputs, journal, ctx)
    if step["tool"] not in ACTIONS:
        left |= await held_up_mark(journal, ctx)
    ctx.emit("toolUsed", end_event_data(step, left))
    return left


async def read_page_state(
    step: Mapping[str, Any], journal: Journal, ctx: AgentContext
) -> dict[str, Any]:
    """Look at the page, and return what the model is told of it.

    Raises:
        PagePrepFailed: As `look`.
    """
    found = await look(step, journal, ctx)
    if not found["ok"]:
        return {**found, "error": error_for_model(found["error"])}
    return {**found, **await fit_result(found["result"], ctx)}


def _answer(answer: str | None) -> dict[str, Any]:
    if answer is not None:
        return {"result": {"answer": answer}}
    told = "Nobody answered in time: do without, or complete with what you have."
    return {"error": {"code": "NO_ANSWER", "message": told}}


async def _use(
    step: Mapping[str, Any], inputs: Mapping[str, Any], journal: Journal, ctx: AgentContext
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
    if "elsewhere" in step:  # whatever a runner answers is nothing to us but its result
        return {"ok": True, **await fit_result(output, ctx, keeps=())}
    warnings = {"warnings": output["warnings"]} if output.get("warnings") else {}
    return {"ok": True, **await fit_result(output, ctx), **warnings, **more}


def last_turn(journal: Journal) -> JournalEntry:
    """Return the model's last turn."""
    return turns_of(journal)[-1]
