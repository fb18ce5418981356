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
from runs.agent.budget import is_over, spent
from runs.agent.call_validation import judged
from runs.agent.first_call import planned_call, told_end, told_start
from runs.agent.history import times_given_back
from runs.agent.journal_view import (
    CALL,
    GIVEN_BACK,
    PAGE,
    TURN,
    Hands,
    Journal,
    Line,
    Next,
    calls_since,
    pages_of,
    turns_of,
)
from runs.agent.page_state import act, held_up, look, tab_to_look_at
from runs.agent.prompt import LAST, error_told, messages_of, room_beside
from runs.agent.redaction import unsplit
from runs.agent.remote_tools import arguments_of, told_elsewhere
from runs.agent.results import fitted, read_on
from runs.agent.tools import (
    ASK,
    COMPLETE,
    OWN,
    READ_ON,
    our_names,
    own_specs,
    specs,
    suggestions_of,
)

MAX_STEPS = 30  # turns of the model, unless the inputs say


def first_turn(inputs: Mapping[str, Any]) -> Next:
    """Return the step that every run of the agent begins with."""
    return _turn(1, inputs)


def next_step(inputs: Mapping[str, Any], journal: Journal) -> Next | None:
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
    if (tab := tab_to_look_at(journal, number)) is not None:
        return Next("page", {"kind": PAGE, "turn": number, "tabId": tab})
    if number in pages_of(journal) and not pages_of(journal)[number].succeeded:
        return None
    return _next_turn(last, journal, inputs)


def _next_turn(last: Line, journal: Journal, inputs: Mapping[str, Any]) -> Next | None:
    turns, said = turns_of(journal), last.output or {}
    completion = said.get("completion")
    if said["stop"] == "refusal" or is_over(spent(journal)):
        return None
    if completion is not None:
        is_repaired = any(turn.input.get("repairs") for turn in turns)
        if completion["verification"]["pass"] or is_repaired:
            return None
        return _turn(len(turns) + 1, inputs, repairs=True)
    if last.input.get("last"):
        return None
    return _turn(len(turns) + 1, inputs)


def _turn(number: int, inputs: Mapping[str, Any], *, repairs: bool = False) -> Next:
    told: dict[str, Any] = {"kind": TURN, "turn": number}
    if repairs:
        told["repairs"] = True
    elif number >= inputs.get("maxSteps", MAX_STEPS):
        told["last"] = True
    return Next(f"turn {number}", told)


def _call(call: Mapping[str, Any], turn: int) -> Next:
    told = {
        "kind": CALL,
        "turn": turn,
        "tool": call["name"],
        "args": call["args"],
        "toolCallId": call["id"],
    }
    if (there := call.get("elsewhere")) is not None:
        told |= {"args": arguments_of(call), "elsewhere": there}
        return Next(there["tool"], told, Effect.ONCE)
    tool = get_tool(call["name"]) if call["name"] not in OWN else None
    return Next(call["name"], told, tool.effect if tool is not None else Effect.READ)


# --- a turn of the model ----------------------------------------------------------------------


async def do_turn(
    step: Mapping[str, Any], inputs: Mapping[str, Any], journal: Journal, hands: Hands
) -> dict[str, Any]:
    """Ask the model, and return {content, calls, stop, usage, completion?}.

    Raises:
        ToolFailed: As the gateway does.
    """
    known: dict[str, Any] = {}
    if step["turn"] == 1:
        known = {GIVEN_BACK: await hands.looked_up(times_given_back)}
        hands.emit("statusUpdate", {"status": "running"})
    if hands.tries > 1:  # what a lost worker told of this turn does not count
        hands.emit("chatDelta", {"content": "", "restarted": True})
    schema, is_last = inputs.get("outputSchema"), bool(step.get("last") or step.get("repairs"))
    named = () if is_last else inputs["tools"]
    there = await told_elsewhere(named, hands, taken=our_names())
    tools = own_specs(schema, last=True) if is_last else specs(named, there, schema)
    note = LAST if step.get("last") else ""
    before = await hands.said_before()
    talk = messages_of(inputs, journal, before=before, size=room_beside(tools), note=note)
    try:
        with model_turn() as took:
            calls, done = await _ask(talk, tools, hands)
            took(done.usage.input_tokens, done.usage.output_tokens)
    except ToolFailed as failed:
        told = error_told(failed.as_dict())
        hands.emit("structuredOutput", {"status": "error", "error": told})
        raise
    said = {
        "content": storable_text(done.content),
        "stop": done.stop,
        "usage": _usage(done.usage),
        "calls": judged(calls, done, {tool.name for tool in tools}, there),
    }
    return said | known | _completion(said, schema, hands)


async def _ask(
    talk: list[Message], tools: list[ToolSpec], hands: Hands
) -> tuple[list[LlmCall], Done]:
    # Here alone: nothing of a model is loaded before an agent runs.
    from runners.llm.gateway import get_gateway

    gateway = await get_gateway(settings.LLM)
    left_ms = max(1, int(hands.seconds_left() * 1000))
    calls: list[LlmCall] = []
    async with aclosing(
        unsplit(gateway.stream_chat(messages=talk, tools=tools, timeout_ms=left_ms))
    ) as chat:
        async for part in chat:
            if isinstance(part, Delta):
                hands.emit("chatDelta", {"content": part.content})
            elif isinstance(part, Restarted):
                hands.emit("chatDelta", {"content": "", "restarted": True})
            elif isinstance(part, LlmCall):
                calls.append(part)
            else:
                done = part
    hands.emit("chatDelta", {"content": "", "finished": True})
    return calls, done


def _usage(usage: Usage) -> dict[str, Any]:
    told: dict[str, Any] = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "costUsd": usage.cost_usd,
    }
    return told | ({"estimated": True} if usage.is_estimated else {})


def _completion(
    said: Mapping[str, Any], schema: Mapping[str, Any] | None, hands: Hands
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
        hands.emit("structuredOutput", {"status": "ok" if fits else "error", **told})
    return {"completion": completion}


# --- a call -------------------------------------------------------------------------------------


async def do_call(
    step: Mapping[str, Any], inputs: Mapping[str, Any], journal: Journal, hands: Hands
) -> dict[str, Any]:
    """Make a call, and return what the model is told of it: {ok, result | error, …} (S1 §5); a
    failure is one of its answers.
    """
    if not hands.goes_on and planned_call(step, inputs) is None:  # else told with the step's start
        hands.emit("toolUsed", told_start(step))
    if step["tool"] == ASK:
        answer = hands.ask(step["args"]["question"], suggestions_of(step["args"]))
        left = {"ok": answer is not None, **_answer(answer)}
    elif step["tool"] == READ_ON:
        left = await read_on(step["args"], hands)
    else:
        left = await _use(step, inputs, journal, hands)
    if step["tool"] not in ACTIONS:
        left |= await held_up(journal, hands)
    hands.emit("toolUsed", told_end(step, left))
    return left


async def do_page(step: Mapping[str, Any], journal: Journal, hands: Hands) -> dict[str, Any]:
    """Look at the page, and return what the model is told of it.

    Raises:
        PagePrepFailed: As `look`.
    """
    found = await look(step, journal, hands)
    if not found["ok"]:
        return {**found, "error": error_told(found["error"])}
    return {**found, **await fitted(found["result"], hands)}


def _answer(answer: str | None) -> dict[str, Any]:
    if answer is not None:
        return {"result": {"answer": answer}}
    told = "Nobody answered in time: do without, or complete with what you have."
    return {"error": {"code": "NO_ANSWER", "message": told}}


async def _use(
    step: Mapping[str, Any], inputs: Mapping[str, Any], journal: Journal, hands: Hands
) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if (call := planned_call(step, inputs)) is None:
        result, more = await act(step, journal, hands)
    else:
        result = await hands.attempt(
            call.tool, call.args, target_id=call.target_id, elsewhere=call.elsewhere
        )
    if not result.ok:
        return {"ok": False, "error": error_told(result.error or {}), **more}
    output = storable(result.output)
    if "elsewhere" in step:  # whatever a runner answers is nothing to us but its result
        return {"ok": True, **await fitted(output, hands, keeps=())}
    warnings = {"warnings": output["warnings"]} if output.get("warnings") else {}
    return {"ok": True, **await fitted(output, hands), **warnings, **more}


def last_turn(journal: Journal) -> Line:
    """Return the model's last turn."""
    return turns_of(journal)[-1]
