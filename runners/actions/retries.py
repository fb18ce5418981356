"""Retry of browser actions: once, after one second (S1 §5.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from runners.actions.catalogue import ACTIONS
from runners.tools.base import ToolResult

PerformAction = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]
Sleep = Callable[[float], Awaitable[None]]
RETRY_SECONDS = 1.0


def may_retry(name: str, args: Mapping[str, Any], error: Mapping[str, Any]) -> bool:
    """Return whether an action that failed with this error may be retried once.

    The error must be retryable, and the action idempotent or without any effect so far.
    """
    if not error.get("retryable", False):
        return False
    effect = error.get("details", {}).get("effect")
    return effect == "none" or ACTIONS[name].is_idempotent(args)


async def with_retry(
    perform: PerformAction, name: str, args: Mapping[str, Any], *, pause: Sleep = asyncio.sleep
) -> ToolResult:
    """Perform an action; if it fails and `may_retry` allows it, retry once after a second."""
    result = await perform(name, args)
    if result.ok or not may_retry(name, args, result.error or {}):
        return result
    await pause(RETRY_SECONDS)
    return await perform(name, args)
