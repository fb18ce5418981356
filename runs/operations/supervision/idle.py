"""When a background stack stops by itself: after a while without members, calls and runs."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable

from runs.operations.home.locks import open_lock, try_lock
from runs.operations.home.paths import HomePaths

_RECORD_EVERY_S = 5.0


class WebActivity:
    """Records in the web process when it was last called: as the mtime of the members' lock."""

    def __init__(self, paths: HomePaths) -> None:
        self._file = paths.members_lock
        self._recorded_at = -math.inf

    def record(self) -> None:
        """Record a call, at most every few seconds. Without a stack there is no file to touch."""
        now = time.monotonic()
        if now - self._recorded_at > _RECORD_EVERY_S:
            self._recorded_at = now
            with contextlib.suppress(OSError):
                os.utime(self._file)


class IdleRule:
    """Decides when a background stack stops. Its supervisor checks it every few seconds."""

    def __init__(
        self,
        paths: HomePaths,
        *,
        idle_s: float,
        has_active_runs: Callable[[], bool],
    ) -> None:
        self._paths = paths
        self._idle_s = idle_s
        self._has_active_runs = has_active_runs
        self._used_at = time.monotonic()
        os.close(open_lock(paths.members_lock))
        os.utime(paths.members_lock, (0, 0))  # there was no call yet

    def should_stop(self, on_stop: Callable[[], None]) -> bool:
        """Return whether there was no member, call or run for `idle_s`.

        If so, calls `on_stop`, which records the stop in stack.json, while the members' lock is
        held: a process that becomes a member after that reads that the stack is stopping.
        """
        lock = try_lock(self._paths.members_lock)
        if lock is None:
            self._used_at = time.monotonic()
            return False
        try:
            if self._has_active_runs():
                self._used_at = time.monotonic()
            if time.monotonic() - self._used_at < self._idle_s or self._was_called():
                return False
            on_stop()
            return True
        finally:
            os.close(lock)

    def _was_called(self) -> bool:
        """Return whether the web service was called within `idle_s`."""
        return time.time() - self._paths.members_lock.stat().st_mtime < self._idle_s
