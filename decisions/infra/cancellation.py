"""Tasks of an event loop that are to end: for certain, and all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_S = 1.0


async def cancel_and_wait(tasks: Iterable[asyncio.Future[Any]]) -> list[BaseException | None]:
    """Cancel tasks, wait until every one is over, and return what each raised, in their order: None
    where it was nothing, or only that it was cancelled.

    A task is asked again each second until it obeys, for once is not enough: Python 3.11's
    `asyncio.wait_for` (redis-py sends every command with it) loses a cancel that comes while what
    it waits for is done just then, and a task that loops would be waited for for ever.
    """
    asked = list(tasks)
    waited = {one for one in asked if not one.done()}
    while waited:
        for one in waited:
            one.cancel()
        _, waited = await asyncio.wait(waited, timeout=AGAIN_S)
    return [None if one.cancelled() else one.exception() for one in asked]
