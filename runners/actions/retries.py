"""What may be tried again, once and a second later (S1 §5.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from runners.actions.catalogue import ACTIONS
from runners.tools.base import ToolResult

Act = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]
Pause = Callable[[float], Awaitable[None]]
RETRY_SECONDS = 1.0


def may_retry(name: str, args: Mapping[str, Any], error: Mapping[str, Any]) -> bool:
    """Tell whether an action that failed with this error may be tried once more: its code is
    retryable, and doing it twice does no harm or it was not done at all.
    """
    if not error.get("retryable", False):
        return False
    effect = error.get("details", {}).get("effect")
    return effect == "none" or ACTIONS[name].is_idempotent(args)


async def with_retry(
    act: Act, name: str, args: Mapping[str, Any], *, pause: Pause = asyncio.sleep
) -> ToolResult:
    """Do an action, and once more after a second where that may help and cannot harm."""
    result = await act(name, args)
    if result.ok or not may_retry(name, args, result.error or {}):
        return result
    await pause(RETRY_SECONDS)
    return await act(name, args)
