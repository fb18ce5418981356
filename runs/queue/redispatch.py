"""Passing the bell on: while a worker takes runs, it rings for the next one that waits (for the
bells of a burst are left out: runs.queue.wakeup_dedup).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.db import Error, close_old_connections, connection

from runs.models import Run
from runs.queue import outbox
from runs.queue.dispatch_order import next_run
from runs.queue.eligibility import serves_some_only
from runs.queue.wakeup_dedup import SHARED_QUEUE

SOON_S = 0.02  # a trivial run ends before, and looks for the next one by itself
SELDOM_S = 0.32  # under a flood of trivial runs another look changes little
IDLE_S = 0.2  # the thread and its connection outlive the last run that was taken by this much
log = logging.getLogger(__name__)


class Redispatcher:
    """Rings from a thread of its own, once for all runs that were taken in the meantime."""

    def __init__(self, worker_id: Callable[[], str]) -> None:
        self._worker_id = worker_id
        self._lock = threading.Lock()
        self._taken, self._closed = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def run_claimed(self) -> None:
        """Have it looked, in a moment, whether another run waits for a slot that is free."""
        with self._lock:
            self._taken.set()
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._pass_on, name="bell", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Ring no more, and let go of the thread's connection."""
        self._closed.set()
        self._taken.set()
        thread = self._thread
        if thread is not None:
            thread.join(2)

    def _pass_on(self) -> None:
        try:
            while self._is_needed():
                pause_s = SOON_S
                while not self._closed.wait(pause_s) and (waits := self._next()) is not None:
                    outbox.send_wakeup(SHARED_QUEUE, waits.id)  # until somebody heard and took it
                    pause_s = min(pause_s * 2, SELDOM_S)
        finally:
            connection.close()
            with self._lock:
                if self._thread is threading.current_thread():  # it ends by a defect
                    self._thread = None

    def _is_needed(self) -> bool:
        """Wait a moment for a run that is taken; without one the thread is over."""
        self._taken.wait(IDLE_S)
        with self._lock:
            if self._taken.is_set() and not self._closed.is_set():
                self._taken.clear()
                return True
            self._thread = None
            return False

    def _next(self) -> Run | None:
        try:
            close_old_connections()
            return next_run(self._worker_id(), of_any=serves_some_only())
        except Error as error:
            log.warning("no look for others that wait; the sweeper rings for them: %s", error)
            connection.close()
            return None
