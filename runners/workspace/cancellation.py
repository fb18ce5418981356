"""Work that is done or not done, never abandoned half-way."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """Return what work on a thread returns, also where this task is interrupted meanwhile.

    A thread cannot be interrupted: its end is awaited, and what was done is told as done. The
    caller sees to the interrupt (`runners.invocation.invoke`), and the work bounds its own time.
    """
    working = asyncio.ensure_future(work)
    while not working.done():
        try:
            await asyncio.wait({working})
        except asyncio.CancelledError:
            continue
    return working.result()
