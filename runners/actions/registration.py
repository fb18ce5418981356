"""Register the implementation of an action for one kind of browser target."""

from __future__ import annotations

from collections.abc import Callable

from runners.actions.catalogue import Action
from runners.tools.base import Tool, ToolFunction
from runners.tools.registry import tool


def action(
    spec: Action, *, kind: str, opens_browser: bool = False
) -> Callable[[ToolFunction], Tool]:
    """Register a function as an agent-only tool with the action's name, effect and timeout.

    Its first parameter must be annotated with the action's parameter model.

    Raises:
        ValueError: As `runners.tools.registry.tool`, or the annotation is another model.
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
        registered = register(function)
        if registered.input_model is not spec.parameters:
            raise ValueError(
                f"action {spec.name}: annotate its first parameter with {spec.parameters.__name__}"
            )
        return registered

    return check
