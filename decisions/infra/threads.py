"""Work that would hold up the event loop of an asynchronous door: on threads that keep no
connection that is known not to work.

Short database work has a small pool whose threads keep their connections; nothing that waits for
anything else runs there, or every call of the process would wait for it too.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections, connections

P = ParamSpec("P")
T = TypeVar("T")
_pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="database")
_long = ThreadPoolExecutor(max_workers=8, thread_name_prefix="long")
_under_way: set[asyncio.Task[Any]] = set()  # the loop itself keeps none of them alive


def _clean(function: Callable[[], T]) -> T:
    """Call the function with connections that are known to work, before and after."""
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()


def _closing(function: Callable[[], T]) -> T:
    """Call the function and leave no connection open."""
    try:
        return function()
    finally:
        connections.close_all()


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a short function that uses the database on a thread of the pool and return what it
    returns. It knows of the caller's context: of the trace, say, that a request is part of.
    """
    call = functools.partial(function, *args, **kwargs)
    inside = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_pool, inside, _clean, call)


async def in_long_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that may take a while (it hashes, copies, or waits for a storage) beside the
    pool of the short ones, and return what it returns. It may use the database.
    """
    call = functools.partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_long, _closing, call)


async def run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """Await work of several steps that goes on to its end even if its caller goes away meanwhile:
    the client that asks again finds it done.
    """
    task = asyncio.ensure_future(work)
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)
    return await asyncio.shield(task)
