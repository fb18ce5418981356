"""Redispatch: while this worker executes runs, wake another one for the next run that waits.

The wake-ups of a burst of submits are deduplicated (`runs.queue.wakeups`), so after a claim
more runs may wait without a message of their own. They waited already when the run was chosen
(`Run.others_wait`): a later submit finds no mark of an undelivered wake-up and sends its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.db import Error, close_old_connections, connection

from runs.models import Run
from runs.queue import wakeups
from runs.queue.dispatch_order import next_run
from runs.queue.eligibility import serves_some_only

MIN_PAUSE_S = 0.02  # a trivial run ends sooner, and its worker claims the next one by itself
MAX_PAUSE_S = 0.32  # between two checks of a flood of trivial runs
IDLE_S = 0.2  # the thread keeps its connection this long after the last claim
log = logging.getLogger(__name__)


class Redispatcher:
    """Sends wake-ups from a thread of its own, which runs while this worker claims runs.

    Args:
        look_for_work: lets this worker look for the next run; called where no wake-up can be sent.
    """

    def __init__(self, worker_id: Callable[[], str], look_for_work: Callable[[], None]) -> None:
        self._worker_id, self._look_for_work = worker_id, look_for_work
        self._lock = threading.Lock()
        self._claimed, self._closed = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def run_claimed(self) -> None:
        """Check in a moment whether another run waits and a slot is free. Returns at once."""
        with self._lock:
            self._claimed.set()
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(
                    target=self._redispatch, name="redispatch", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Send no more wake-ups and close the thread's connection."""
        self._closed.set()
        self._claimed.set()
        thread = self._thread
        if thread is not None:
            thread.join(2)

    def _redispatch(self) -> None:
        try:
            while self._is_needed():
                pause_s = MIN_PAUSE_S
                while not self._closed.wait(pause_s) and (run := self._next_run()) is not None:
                    if not wakeups.send(wakeups.SHARED_QUEUE, run.id):
                        self._look_for_work()
                    pause_s = min(pause_s * 2, MAX_PAUSE_S)
        finally:
            connection.close()
            with self._lock:
                if self._thread is threading.current_thread():  # ended by an exception
                    self._thread = None

    def _is_needed(self) -> bool:
        """Wait up to IDLE_S for a claim; without one the thread ends."""
        self._claimed.wait(IDLE_S)
        with self._lock:
            if self._claimed.is_set() and not self._closed.is_set():
                self._claimed.clear()
                return True
            self._thread = None
            return False

    def _next_run(self) -> Run | None:
        try:
            close_old_connections()
            return next_run(self._worker_id(), of_any=serves_some_only())
        except Error as error:
            log.warning("waiting runs cannot be read; workers find them later: %s", error)
            connection.close()
            return None
