"""Three tools that touch nothing: to try a way to the runner, and to measure it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runners.docker_runner.errors import WrongArguments
from runners.docker_runner.tool import Arguments, ToolEnvironment, runner_tool
from runners.tools.base import Effect


class TwoNumbers(Arguments):
    """What to add."""

    a: int | float
    b: int | float


class Text(Arguments):
    """Any text."""

    text: str


@runner_tool("math.add", Effect.READ)
async def math_add(args: TwoNumbers, env: ToolEnvironment) -> Mapping[str, Any]:
    """Add two numbers."""
    result = args.a + args.b
    if not math.isfinite(result):
        raise WrongArguments("The sum is too large for a number.")
    return {"result": result}


@runner_tool("text.upper", Effect.READ)
async def text_upper(args: Text, env: ToolEnvironment) -> Mapping[str, Any]:
    """Return the text in capital letters."""
    return {"text": args.text.upper()}


@runner_tool("echo", Effect.READ)
async def echo(args: Text, env: ToolEnvironment) -> Mapping[str, Any]:
    """Return the text as it is."""
    return {"text": args.text}
