"""Thread pools for blocking work of asynchronous code, with care for Django's connections.

Short database work has a small pool whose threads keep their connections. Work that waits for
anything else uses the second pool: in the first it would delay every call of the process.
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
_running: set[asyncio.Task[Any]] = set()  # the event loop keeps only weak references to tasks


def _clean(function: Callable[[], T]) -> T:
    """Call the function; close unusable connections before and after."""
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()


def _closing(function: Callable[[], T]) -> T:
    """Call the function, then close all connections of the thread."""
    try:
        return function()
    finally:
        connections.close_all()


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a short function that uses the database on a pool thread and return its result.

    It runs in a copy of the caller's context (contextvars), which holds the request's trace.
    """
    call = functools.partial(function, *args, **kwargs)
    run_in_context = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_pool, run_in_context, _clean, call)


async def in_long_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a long function (hashing, copying, object storage) on the second pool and return its
    result. The function may use the database.
    """
    call = functools.partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_long, _closing, call)


async def run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that keeps running if the caller is cancelled, so that a client that
    retries finds the work done.
    """
    task = asyncio.ensure_future(work)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return await asyncio.shield(task)
