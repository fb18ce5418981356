"""Which call of a tool a step of the agent begins with, and what readers are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.authorization.authorize import shown_arguments
from runners.actions.catalogue import ACTIONS, TYPE
from runners.invocation.step_call import StepCall
from runs.agent.journal_view import CALL
from runs.agent.remote_tools import remote_call
from runs.agent.tools import AGENT_TOOLS


def planned_call(step: Mapping[str, Any], inputs: Mapping[str, Any]) -> StepCall | None:
    """Return the call of a tool that is no browser action, or None: an action may look at the page
    first.
    """
    if step["kind"] != CALL:
        return None
    event = "toolUsed", start_event_data(step)
    if (there := step.get("elsewhere")) is not None:
        stands_in = remote_call(there["tool"], inputs)
        return StepCall(there["tool"], step["args"], there["targetId"], stands_in, event)
    if step["tool"] in AGENT_TOOLS or step["tool"] in ACTIONS:
        return None
    return StepCall(step["tool"], step["args"], inputs.get("targetId"), event=event)


def _told_of(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return what names a call to readers."""
    told = {"tool": step["tool"], "toolCallId": step["toolCallId"]}
    if "elsewhere" in step:
        told["targetId"] = step["elsewhere"]["targetId"]
    return told


def start_event_data(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return what readers are told as a call begins. What is typed may be anybody's secret: the
    field that it goes into is not known yet.
    """
    args = dict(step["args"])
    if step["tool"] == TYPE.name and isinstance(args.get("text"), str):
        args["text"] = f"({len(args['text'])} characters)"
    return {"phase": "start", **_told_of(step), "args": shown_arguments(args)}


def end_event_data(step: Mapping[str, Any], left: Mapping[str, Any]) -> dict[str, Any]:
    """Return what readers are told as a call is over, by what it leaves the model."""
    why = {} if left["ok"] else {"errorCode": left.get("error", {}).get("code", "")}
    return {"phase": "end", **_told_of(step), "ok": left["ok"], **why}
