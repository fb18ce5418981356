"""Thread pools for blocking work of asynchronous code, and threads that repeat a function. Both
close connections of Django that broke.

Short database work has a small pool whose threads keep their connections. Work that waits for
anything else uses the second pool: in the first it would delay every call of the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from django.db import Error, close_old_connections, connection, connections

from decisions.foundation.infra.outages import Outage

AFTER_DEFECT_S = 1.0  # pause of a repeating thread after an unexpected exception, at least
log = logging.getLogger(__name__)
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


class RepeatingThread:
    """A daemon thread that calls a function every `every_s` seconds, from `start` to `stop`.

    Between calls it closes a database connection that broke. An outage (an error of the database or
    the operating system) is logged when it begins and when it ends; any other exception is logged.
    In both cases the next call follows.

    Args:
        pause_first: whether the first call comes after a pause as well.
        last: called once after `stop`.
        outage: logs outages; default: with the thread's name.
        stopping: set by `stop`; several threads may share one.
    """

    def __init__(
        self,
        call: Callable[[], object],
        *,
        name: str,
        every_s: float,
        pause_first: bool = True,
        last: Callable[[], object] | None = None,
        outage: Outage | None = None,
        stopping: threading.Event | None = None,
    ) -> None:
        self._call, self._last, self._every_s = call, last, every_s
        self._first_pause_s = every_s if pause_first else 0.0
        self._outage = outage or Outage(
            log,
            on_failure=f"the thread {name} has an outage and retries",
            on_recovery=f"the thread {name} works again",
        )
        self.stopping = stopping or threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, wait_s: float) -> None:
        """Make no further call but the last, and wait for its end for `wait_s` at most. Does
        nothing if the thread was not started.
        """
        self.stopping.set()
        if self._thread.is_alive():
            self._thread.join(wait_s)

    def _run(self) -> None:
        pause_s = self._first_pause_s
        while not self.stopping.wait(pause_s):
            is_defect = self._perform(self._call)
            pause_s = max(self._every_s, AFTER_DEFECT_S) if is_defect else self._every_s
        if self._last is not None:
            self._perform(self._last)
        connection.close()

    def _perform(self, call: Callable[[], object]) -> bool:
        """Make a call; return whether it raised an unexpected exception."""
        close_old_connections()
        try:
            call()
        except (Error, OSError) as error:
            self._outage.failed(error)
            connection.close()
        except Exception:  # whatever it is: the next call has to follow
            log.exception("the thread %s failed and goes on", self._thread.name)
            connection.close()
            return True
        else:
            self._outage.recovered()
        return False
