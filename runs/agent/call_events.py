"""The tool call that a step of the agent starts with, and the data of its `toolUsed` events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from decisions.authorization.authorize import display_arguments
from runners.actions.catalogue import ACTIONS, TYPE
from runners.actions.typed_text import without_text
from runners.errors import ToolFailed
from runners.invocation.planned_call import StepCall
from runs.agent.journal_view import CALL
from runs.agent.remote_tools import remote_call
from runs.agent.tools import AGENT_TOOLS


def planned_call(step: Mapping[str, Any], inputs: Mapping[str, Any]) -> StepCall | None:
    """Return the tool call that a step starts with, or None.

    None also for a browser action: it checks first whether a person has taken over the page.
    """
    if step["kind"] != CALL:
        return None
    event = "toolUsed", start_event_data(step)
    if (there := step.get("elsewhere")) is not None:
        remote = remote_call(there["tool"], inputs)
        return StepCall(there["tool"], step["args"], there["targetId"], remote, event)
    if step["tool"] in AGENT_TOOLS or step["tool"] in ACTIONS:
        return None
    return StepCall(step["tool"], step["args"], inputs.get("targetId"), event=event)


def _call_identity(step: Mapping[str, Any]) -> dict[str, Any]:
    identity = {"tool": step["tool"], "toolCallId": step["toolCallId"]}
    if "elsewhere" in step:
        identity["targetId"] = step["elsewhere"]["targetId"]
    return identity


def start_event_data(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event data of a call's start, without typed text."""
    args = dict(step["args"])
    if step["tool"] == TYPE.name:
        args = without_text(args)
    return {"phase": "start", **_call_identity(step), "args": display_arguments(args)}


def end_event_data(step: Mapping[str, Any], output: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event data of a call's end, from the output that the model gets."""
    code = {} if output["ok"] else {"errorCode": output.get("error", {}).get("code", "")}
    return {"phase": "end", **_call_identity(step), "ok": output["ok"], **code}


def refused_event_data(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event data of a call of a turn that is not made (`validate_calls`): its end alone,
    with the arguments.
    """
    step = {"tool": call["name"], "args": call["args"], "toolCallId": call["id"]}
    error = {"code": call.get("code") or "INVALID_PARAMETER"}
    end = end_event_data(step, {"ok": False, "error": error})
    return start_event_data(step) | end | {"refused": True}


@contextmanager
def ending_event(
    step: Mapping[str, Any], emit: Callable[[str, Mapping[str, Any]], None]
) -> Iterator[None]:
    """Write the event of a call's end too where the call ends its step by a failure."""
    try:
        yield
    except ToolFailed as failed:
        output = {"ok": False, "error": {"code": failed.code}}
        emit("toolUsed", end_event_data(step, output))
        raise
