"""Three tools that touch nothing: to try a way to the runner, and to measure it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runners.docker_runner.errors import WrongArguments
from runners.docker_runner.tool import Arguments, Hands, offered
from runners.tools.base import Effect


class TwoNumbers(Arguments):
    """What to add."""

    a: int | float
    b: int | float


class Text(Arguments):
    """Any text."""

    text: str


@offered("math.add", Effect.READ)
async def math_add(args: TwoNumbers, hands: Hands) -> Mapping[str, Any]:
    """Add two numbers."""
    result = args.a + args.b
    if not math.isfinite(result):
        raise WrongArguments("The sum is too large for a number.")
    return {"result": result}


@offered("text.upper", Effect.READ)
async def text_upper(args: Text, hands: Hands) -> Mapping[str, Any]:
    """Return the text in capital letters."""
    return {"text": args.text.upper()}


@offered("echo", Effect.READ)
async def echo(args: Text, hands: Hands) -> Mapping[str, Any]:
    """Return the text as it is."""
    return {"text": args.text}
