"""Retry of browser actions: once, after one second (S1 §5.1)."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from runners.actions.catalogue import ACTIONS
from runners.errors import PageCrashed
from runners.tools.base import ToolResult

PerformAction = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]


class PerformWithin(Protocol):
    """Perform an action within its time limit, or within `timeout_ms` if that is less."""

    def __call__(
        self, tool: str, args: Mapping[str, Any], /, *, timeout_ms: int | None = None
    ) -> Awaitable[ToolResult]: ...


RETRY_SECONDS = MIN_SECONDS = 1.0
# The action was sent again already, after a second and with the same actionId
# (runners.paired_browser.dispatch).
SENT_AGAIN = frozenset({"PLUGIN_OFFLINE", "PLUGIN_TIMEOUT_ACK", "PLUGIN_TIMEOUT_EXEC"})


def may_retry(name: str, args: Mapping[str, Any], error: Mapping[str, Any]) -> bool:
    """Return whether an action that failed with this error may be retried once.

    The error must be retryable, and the action idempotent or without any effect so far.
    """
    if not error.get("retryable", False) or error.get("errorCode") in SENT_AGAIN:
        return False
    effect = error.get("details", {}).get("effect")
    return effect == "none" or ACTIONS[name].is_idempotent(args)


async def with_retry(
    perform: PerformWithin,
    name: str,
    args: Mapping[str, Any],
) -> ToolResult:
    """Perform an action; if it fails and `may_retry` allows it, retry once after a second.

    Both tries and the pause share the action's time limit; what its first try leaves of it must be
    more than a second. A page that crashed is retried with the whole limit: opening another one
    counts for none of it.
    """
    began = time.monotonic()
    result = await perform(name, args)
    error = result.error or {}
    if result.ok or not may_retry(name, args, error):
        return result
    left = ACTIONS[name].timeout_ms / 1000 - (time.monotonic() - began) - RETRY_SECONDS
    if left < MIN_SECONDS and error.get("errorCode") != PageCrashed.code:
        return result
    await asyncio.sleep(RETRY_SECONDS)
    if error.get("errorCode") == PageCrashed.code:
        return await perform(name, args)
    return await perform(name, args, timeout_ms=math.ceil(left * 1000))
