"""Database work for asynchronous doors: on a small pool of threads that keep their connections."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")
_pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="database")


def _clean(function: Callable[[], T]) -> T:
    """Call the function with connections that are known to work, before and after."""
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that uses the database on a thread of the pool and return what it returns."""
    call = functools.partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_pool, _clean, call)
