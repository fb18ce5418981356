"""Work on files that is done or not done, never abandoned half-way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def unbroken(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that changes files on a thread and return what it returns.

    A thread cannot be interrupted: where the call is, its end is awaited all the same, and what was
    done is returned as done. The function bounds its own time.
    """
    working = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    while not working.done():
        try:
            await asyncio.wait({working})
        except asyncio.CancelledError:
            continue  # whoever interrupts waits for us (runners.invoke)
    return working.result()
