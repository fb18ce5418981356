"""When a background stack ends by itself: for a while nobody wants it, calls it or runs in it."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable

from runs.installation.home.locks import open_lock, try_lock
from runs.installation.home.paths import HomePaths

_NOTED_EVERY_S = 5.0


class WebActivity:
    """Notes, in the web's process, that somebody calls: the age of the members' lock tells it."""

    def __init__(self, at: HomePaths) -> None:
        self._file = at.members_lock
        self._noted = -math.inf

    def record(self) -> None:
        """Note it now; costs nothing when it was noted a moment ago. Only a stack has the file."""
        now = time.monotonic()
        if now - self._noted > _NOTED_EVERY_S:
            self._noted = now
            with contextlib.suppress(OSError):
                os.utime(self._file)


class IdleRule:
    """Asked now and then by a background supervisor; once it says yes, the stack is ending."""

    def __init__(
        self,
        at: HomePaths,
        *,
        idle_s: float,
        has_active_runs: Callable[[], bool],
    ) -> None:
        self._at = at
        self._idle_s = idle_s
        self._has_active_runs = has_active_runs
        self._wanted = time.monotonic()
        os.close(open_lock(at.members_lock))
        os.utime(at.members_lock, (0, 0))  # nobody has called yet

    def should_stop(self, on_over: Callable[[], None]) -> bool:
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
            if time.monotonic() - self._wanted < self._idle_s or self._was_called():
                return False
            on_over()
            return True
        finally:
            os.close(lock)

    def _was_called(self) -> bool:
        """Tell whether the web was, lately."""
        return time.time() - self._at.members_lock.stat().st_mtime < self._idle_s
