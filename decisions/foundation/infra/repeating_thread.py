"""A thread that repeats a function until it is stopped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.db import Error, close_old_connections, connection

from decisions.foundation.infra.outages import Outage

AFTER_DEFECT_S = 1.0  # pause after an unexpected exception, at least
log = logging.getLogger(__name__)


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
