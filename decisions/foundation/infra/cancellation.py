"""Cancellation of asyncio tasks that does not return before every task has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

RETRY_S = 1.0


async def cancel_and_wait(tasks: Iterable[asyncio.Future[Any]]) -> list[BaseException | None]:
    """Cancel tasks, wait until all have ended, and return each task's exception, in their order:
    None for a task that returned or was cancelled.

    Cancels again every RETRY_S until the task ends: Python 3.11's `asyncio.wait_for` (redis-py
    uses it for every command) loses a cancel that arrives just as the awaited future completes, so
    that a task with a loop would never end.
    """
    every = list(tasks)
    pending = {task for task in every if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=RETRY_S)
    return [None if task.cancelled() else task.exception() for task in every]
