"""How a kind of browser target registers its hand for an action."""

from __future__ import annotations

from collections.abc import Callable

from runners.actions.catalogue import Action
from runners.tools.base import Tool, ToolFunction
from runners.tools.registry import tool


def action(
    spec: Action, *, kind: str, opens_browser: bool = False
) -> Callable[[ToolFunction], Tool]:
    """Register a function as a tool of the agent's loop under the action's name, effect and time.

    Its first parameter has to be annotated with the action's parameters.

    Raises:
        ValueError: As `runners.tools.registry.tool`, or the parameters are another action's.
    """
    register = tool(
        spec.name,
        kind=kind,
        effect=spec.effect,
        timeout_ms=spec.timeout_ms,
        agent_only=True,
        opens_browser=opens_browser,
    )

    def check(function: ToolFunction) -> Tool:
        made = register(function)
        if made.input_model is not spec.parameters:
            raise ValueError(f"action {spec.name}: it takes {spec.parameters.__name__}")
        return made

    return check
