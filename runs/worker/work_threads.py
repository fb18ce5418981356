"""The threads on which a worker looks for runs and executes them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connections

IDLE_S = 60.0  # a thread keeps its connection to the database for this long without work


class WorkThreads:
    """At most `limit` threads, each of which calls `work` once for each wake-up that it takes.

    A thread ends after IDLE_S without a wake-up, and closes its connection to the database.
    """

    def __init__(self, limit: int, work: Callable[[], None]) -> None:
        self._limit, self._work = limit, work
        self._lock = threading.Condition()
        self._threads: set[threading.Thread] = set()
        self._idle = self._wakeups = 0
        self._is_closed = False

    def wake(self) -> None:
        """Let one more thread work, or the first that becomes idle. Returns at once."""
        with self._lock:
            if self._is_closed:
                return
            if self._idle > self._wakeups:
                self._wakeups += 1
                self._lock.notify()
            elif len(self._threads) < self._limit:
                thread = threading.Thread(target=self._run, name="run", daemon=True)
                self._threads.add(thread)
                thread.start()
            else:
                self._wakeups = max(1, self._wakeups)  # for the first that has no work left

    def close(self) -> None:
        """Start no more work, and wait for the threads to end."""
        with self._lock:
            self._is_closed = True
            threads = list(self._threads)
            self._lock.notify_all()
        for thread in threads:
            thread.join()

    def _run(self) -> None:
        try:
            self._work()
            while self._is_woken():
                self._work()
        finally:
            connections.close_all()
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _is_woken(self) -> bool:
        """Wait for a wake-up; False where the thread should end."""
        with self._lock:
            self._idle += 1
            self._lock.wait_for(lambda: self._wakeups or self._is_closed, IDLE_S)
            self._idle -= 1
            if self._is_closed or not self._wakeups:
                return False
            self._wakeups -= 1
            return True
