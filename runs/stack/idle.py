"""When a background stack ends by itself: nobody wants it, nothing runs, for a while."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from runs.stack.locks import try_lock
from runs.stack.places import Places


class IdleRule:
    """Asked now and then by a background supervisor; once it says yes, the stack is ending."""

    def __init__(
        self,
        at: Places,
        *,
        idle_s: float,
        has_active_runs: Callable[[], bool],
    ) -> None:
        self._at = at
        self._idle_s = idle_s
        self._has_active_runs = has_active_runs
        self._wanted = time.monotonic()

    def is_over(self, on_over: Callable[[], None]) -> bool:
        """Tell whether nobody was seen and nothing ran for the whole time.

        The members' lock is held from the decision until `on_over` has said so in stack.json:
        whoever becomes a member after that knows that this stack is going.
        """
        lock = try_lock(self._at.members_lock)
        if lock is None:
            self._wanted = time.monotonic()
            return False
        try:
            if self._has_active_runs():
                self._wanted = time.monotonic()
            if time.monotonic() - self._wanted < self._idle_s:
                return False
            on_over()
            return True
        finally:
            os.close(lock)
