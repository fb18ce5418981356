"""One asyncio loop on one daemon thread per process: where every tool's coroutine runs.

Celery's threads hand their coroutines over with `get_loop().submit(...)`; a forked child gets a
loop of its own.
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
Answer = TypeVar("Answer")


class LoopThread:
    """A daemon thread that runs one asyncio loop until `close`."""

    def __init__(self, name: str = "continuity-loop") -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_log_in_one_line)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def submit(self, coro: Coroutine[Any, Any, Answer]) -> concurrent.futures.Future[Answer]:
        """Start the coroutine on the loop; cancelling the returned future cancels its task.

        Raises:
            RuntimeError: The loop is closed; the coroutine was not started.
        """
        try:
            return asyncio.run_coroutine_threadsafe(coro, self._loop)
        except RuntimeError:
            coro.close()
            raise

    def is_alive(self) -> bool:
        """Say whether the thread runs, without asking whether it answers."""
        return self._thread.is_alive() and not self._loop.is_closed()

    def ping(self, timeout: float) -> bool:
        """Say whether the loop runs a callback within `timeout` seconds (not: hung or closed)."""
        answered = threading.Event()
        try:
            self._loop.call_soon_threadsafe(answered.set)
        except RuntimeError:
            return False
        return answered.wait(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Cancel what still runs, stop the loop and join its thread for at most `timeout` seconds.

        Safe to call twice, and safe when the loop hangs: the daemon thread is then left to the
        process's end.
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
    """Log without a traceback what nobody awaited: a killed driver leaves such futures."""
    exc = context.get("exception")
    logger.warning("event loop: %s (%s)", context.get("message"), type(exc).__name__)


_lock = threading.Lock()
_loops: dict[int, LoopThread] = {}


def get_loop() -> LoopThread:
    """Return this process's loop thread, starting it when there is none that lives.

    Keyed by pid, because a thread does not survive a fork.
    """
    with _lock:
        found = _loops.get(os.getpid())
        if found is None or not found.is_alive():
            found = _loops[os.getpid()] = LoopThread()
        return found


def _after_fork() -> None:
    """Give the child its own lock: a thread that it lacks may hold the parent's."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
