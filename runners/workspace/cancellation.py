"""Run work on a thread to its end, even when the awaiting task is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """Await work on a thread and return its result; ignore cancellation until it has finished.

    A thread cannot be interrupted, so its real outcome is awaited and returned. The caller
    (`runners.invocation.invoke`) handles the cancellation; the work must bound its own time.
    """
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    return task.result()
