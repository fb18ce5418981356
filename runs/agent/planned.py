"""Which call of a tool a step of the agent begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import ACTIONS
from runs.agent.elsewhere import stand_in
from runs.agent.seen import CALL
from runs.agent.tools import OWN
from runs.planned import StepCall


def planned_call(step: Mapping[str, Any], inputs: Mapping[str, Any]) -> StepCall | None:
    """Return the call of a tool that is no browser action, or None: an action may look at the page
    first.
    """
    if step["kind"] != CALL:
        return None
    if (there := step.get("elsewhere")) is not None:
        stands_in = stand_in(there["tool"], inputs)
        return StepCall(there["tool"], step["args"], there["targetId"], stands_in)
    if step["tool"] in OWN or step["tool"] in ACTIONS:
        return None
    return StepCall(step["tool"], step["args"], inputs.get("targetId"))
