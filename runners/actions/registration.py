"""Register the implementation of an action on the worker's browser."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from runners.actions.catalogue import Action
from runners.actions.results import ActionResult
from runners.tools.base import Tool, ToolContext
from runners.tools.registry import tool

ActionFunction = Callable[[Any, ToolContext], Awaitable[ActionResult]]


def action(spec: Action, *, opens_browser: bool = False) -> Callable[[ActionFunction], Tool]:
    """Register a function as an agent-only tool with the action's name, effect and timeout; the
    tool's output is the function's result as JSON.

    Its first parameter must be annotated with the action's parameter model.

    Raises:
        ValueError: As `runners.tools.registry.tool`, or the annotation is another model.
    """
    register = tool(
        spec.name,
        kind="browser",
        effect=spec.effect,
        timeout_ms=spec.timeout_ms,
        agent_only=True,
        opens_browser=opens_browser,
    )

    def register_action(function: ActionFunction) -> Tool:
        @functools.wraps(function)
        async def perform(args: Any, ctx: ToolContext) -> Mapping[str, Any]:
            return (await function(args, ctx)).as_output()

        registered = register(perform)
        if registered.input_model is not spec.parameters:
            raise ValueError(
                f"action {spec.name}: annotate its first parameter with {spec.parameters.__name__}"
            )
        return registered

    return register_action
