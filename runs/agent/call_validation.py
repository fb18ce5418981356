"""Which of the calls that a model asks for are made: those that came whole, of tools that it was
offered, with arguments that fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.errors import InvalidInput
from decisions.validation.storable import storable
from runners.errors import ToolFailed
from runners.invocation.arguments import check_args
from runners.llm.base import Done, LlmCall
from runners.remote_tools.model_facing import ToldTool
from runners.tools.registry import get_tool
from runs.agent.remote_tools import resolve_remote_call
from runs.agent.tools import AGENT_TOOLS, ASK, COMPLETE


def validate_calls(
    calls: list[LlmCall], done: Done, offered: set[str], remote: Mapping[str, ToldTool]
) -> list[dict[str, Any]]:
    """Return the calls as the journal keeps them, each that is not made with the reason, each that
    a runner performs with its place.
    """
    kept = []
    for call in calls:
        one = {"id": call.tool_call_id, "name": call.name, "args": dict(call.arguments)}
        told = remote.get(call.name)
        known = offered | {call.name} if told is not None else offered
        if refused := _refusal(call, done, known, is_alone=len(calls) == 1):
            one |= {"refused": refused, "code": _code(call, known)}
        elif told is not None:
            one |= _remote_fields(told, call)
        kept.append(storable(one))
    return kept


def _refusal(call: LlmCall, done: Done, offered: set[str], *, is_alone: bool) -> str:
    """Return why a call is not made; empty where it is."""
    if done.stop in ("length", "refusal"):
        return "the turn was cut, so none of its calls was made"
    if call.problem:
        return call.problem
    if call.name not in offered:
        return f"there is no tool {call.name} here; there are {', '.join(sorted(offered))}"
    if call.name == COMPLETE and not is_alone:
        return "call it alone, once the results of your other calls are there"
    return _own_refusal(call) if call.name in AGENT_TOOLS else _wrong_arguments(call)


def _code(call: LlmCall, known: set[str]) -> str:
    """Return the code of a refusal: a call that did not come as calls do, a tool that it does not
    have, or what is wrong with its arguments.
    """
    if call.problem:
        return "SCHEMA_VALIDATION_FAILED"
    return "INVALID_PARAMETER" if call.name in known else "E_POLICY_VIOLATION"


def _remote_fields(told: ToldTool, call: LlmCall) -> dict[str, Any]:
    try:
        return {"elsewhere": resolve_remote_call(told, call.arguments)}
    except InvalidInput as wrong:
        return {"refused": wrong.message}


def _wrong_arguments(call: LlmCall) -> str:
    tool = get_tool(call.name)
    try:
        if tool is not None:
            check_args(tool, call.arguments)
    except (InvalidInput, ToolFailed) as wrong:
        return wrong.message
    return ""


def _own_refusal(call: LlmCall) -> str:
    field = {ASK: "question", COMPLETE: "result"}.get(call.name, "artifactId")
    offset = call.arguments.get("offset", 0)
    if not isinstance(call.arguments.get(field), str) or not call.arguments[field].strip():
        return f"{field} has to be a text"
    is_number = isinstance(offset, int) and not isinstance(offset, bool) and offset >= 0
    return "" if is_number else "offset has to be a whole number from 0 on"
