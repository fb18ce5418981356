"""Validate the tool calls that the model requests; an invalid one is not made, and the model gets
the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.storable import storable
from runners.errors import ToolFailed
from runners.invocation.arguments import check_args
from runners.llm.base import Done, LlmCall
from runners.remote_tools.model_facing import ModelFacingTool
from runners.tools.registry import get_tool
from runs.agent.remote_tools import resolve_remote_call
from runs.agent.tools import AGENT_TOOLS, ASK, COMPLETE


def validate_calls(
    calls: list[LlmCall], done: Done, offered: set[str], remote: Mapping[str, ModelFacingTool]
) -> list[dict[str, Any]]:
    """Return the calls as the journal stores them: an invalid one with `refused` and `code`, one
    for a runner with `elsewhere`, its tool and target.
    """
    validated = []
    for call in calls:
        entry = {"id": call.tool_call_id, "name": call.name, "args": dict(call.arguments)}
        tool = remote.get(call.name)
        known = offered | {call.name} if tool is not None else offered
        if refused := _refusal(call, done, known, is_alone=len(calls) == 1):
            entry |= {"refused": refused, "code": _code(call, known)}
        elif tool is not None:
            entry |= _remote_fields(tool, call)
        validated.append(storable(entry))
    return validated


def _refusal(call: LlmCall, done: Done, offered: set[str], *, is_alone: bool) -> str:
    """Return why a call is refused; empty if it is valid."""
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
    """Return the error code of a refused call: malformed, of a tool that the agent does not have,
    or with invalid arguments.
    """
    if call.problem:
        return "SCHEMA_VALIDATION_FAILED"
    return "INVALID_PARAMETER" if call.name in known else "E_POLICY_VIOLATION"


def _remote_fields(tool: ModelFacingTool, call: LlmCall) -> dict[str, Any]:
    try:
        return {"elsewhere": resolve_remote_call(tool, call.arguments)}
    except InvalidInput as error:
        return {"refused": error.message}


def _wrong_arguments(call: LlmCall) -> str:
    tool = get_tool(call.name)
    try:
        if tool is not None:
            check_args(tool, call.arguments)
    except (InvalidInput, ToolFailed) as error:
        return error.message
    return ""


def _own_refusal(call: LlmCall) -> str:
    field = {ASK: "question", COMPLETE: "result"}.get(call.name, "artifactId")
    offset = call.arguments.get("offset", 0)
    if not isinstance(call.arguments.get(field), str) or not call.arguments[field].strip():
        return f"{field} has to be a text"
    is_number = isinstance(offset, int) and not isinstance(offset, bool) and offset >= 0
    return "" if is_number else "offset has to be a whole number from 0 on"
