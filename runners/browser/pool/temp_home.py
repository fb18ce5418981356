"""A temporary directory for browser profiles and driver files, removed when its owner ends.

The owner process locks a file in it, so that other processes, also in other containers, can tell
whether the owner is alive. `sweep_homes` removes the directories of killed owners and kills the
processes that still use them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
from pathlib import Path

PREFIX = "continuity-browser-"
LOCK = "owner.lock"


class BrowserHome:
    """One directory, from its creation until `remove`."""

    def __init__(self) -> None:
        base = Path(tempfile.gettempdir())
        hidden = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=base))
        self._lock = os.open(hidden / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Renamed to the pattern of `sweep_homes` only now, so that it is never found unlocked.
        self.path = hidden.rename(base / hidden.name.removeprefix("."))

    def remove(self) -> None:
        """Kill the processes that use the directory and delete it; safe to call twice."""
        if self._lock < 0:
            return
        _kill_processes_of(self.path)
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
        self._lock = -1


def sweep_homes() -> int:
    """Remove the directories whose owners have ended; return how many."""
    removed = 0
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        lock = _lock_if_abandoned(path)
        if lock is None:
            continue
        _kill_processes_of(path)
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)
        removed += 1
    return removed


def _lock_if_abandoned(path: Path) -> int | None:
    """Lock a directory whose owner ended and return the lock; None if the owner is alive."""
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _kill_processes_of(home: Path) -> None:
    """Kill drivers and browsers that use `home` (Linux; elsewhere a closed pipe ends them)."""
    for process in Path("/proc").glob("[0-9]*"):
        if _uses(process, str(home).encode()):
            with contextlib.suppress(OSError):
                os.kill(int(process.name), signal.SIGKILL)


def _uses(process: Path, home: bytes) -> bool:
    try:
        command = (process / "cmdline").read_bytes()
        if b"--user-data-dir=" + home in command:
            return True
        is_driver = command.rstrip(b"\0").endswith(b"run-driver")
        return is_driver and b"TMPDIR=" + home in (process / "environ").read_bytes()
    except OSError:
        return False
