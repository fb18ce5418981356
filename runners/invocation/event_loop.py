"""The event loop of a process: one asyncio loop on a daemon thread executes all tool coroutines.

Other threads submit coroutines with `get_loop().submit(...)`; a forked child gets its own loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


class LoopThread:
    """A daemon thread that runs one asyncio loop until `close`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_log_in_one_line)
        self._thread = threading.Thread(target=self._run, name="continuity-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def submit(self, coro: Coroutine[Any, Any, Result]) -> concurrent.futures.Future[Result]:
        """Start the coroutine on the loop; cancelling the returned future cancels its task.

        Raises:
            RuntimeError: The loop is closed; the coroutine was not started.
        """
        try:
            return asyncio.run_coroutine_threadsafe(coro, self._loop)
        except RuntimeError:
            coro.close()
            raise

    def run(self, coro: Coroutine[Any, Any, Result], within_s: float) -> Result | None:
        """Return the coroutine's result, or None if it takes longer, and then cancel it.

        Raises:
            RuntimeError: As `submit`.
        """
        future = self.submit(coro)
        try:
            return future.result(within_s)
        except (TimeoutError, concurrent.futures.CancelledError):
            future.cancel()
            logger.warning("%r did not end within %s s", coro, within_s)
            return None

    def is_alive(self) -> bool:
        """Return whether the thread runs; it may still hang (see `ping`)."""
        return self._thread.is_alive() and not self._loop.is_closed()

    def ping(self, timeout: float) -> bool:
        """Return whether the loop executes a callback within `timeout` seconds."""
        answered = threading.Event()
        try:
            self._loop.call_soon_threadsafe(answered.set)
        except RuntimeError:
            return False
        return answered.wait(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Cancel all tasks, stop the loop and join its thread for at most `timeout` seconds.

        Calling it twice is safe. If the loop hangs, the daemon thread ends with the process.
        """
        if not self.is_alive():
            return
        done = self.submit(self._cancel_all())
        try:
            done.result(timeout)
        except concurrent.futures.TimeoutError:
            logger.warning("the event loop did not end its tasks within %s s", timeout)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout)
        if not self._thread.is_alive():
            self._loop.close()

    async def _cancel_all(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


def _log_in_one_line(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log exceptions of futures that were never awaited, as a killed browser driver leaves them."""
    exc = context.get("exception")
    logger.warning("event loop: %s (%s)", context.get("message"), type(exc).__name__)


_lock = threading.Lock()
_loops: dict[int, LoopThread] = {}


def get_loop() -> LoopThread:
    """Return this process's loop thread, starting one if none is alive.

    Keyed by pid, because a thread does not survive a fork.
    """
    with _lock:
        found = _loops.get(os.getpid())
        if found is None or not found.is_alive():
            found = _loops[os.getpid()] = LoopThread()
        return found


def _after_fork() -> None:
    """Give a forked child a new lock, because a thread of the parent may hold the old one."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
