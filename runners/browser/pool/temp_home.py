"""A temporary directory that dies with its owner: browser profiles and driver files live in it.

The owner holds a lock on a file inside, so that whoever comes later can tell a living owner from a
killed one, also across containers; `sweep_homes` removes what killed owners left, and ends
processes that still live in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "continuity-browser-"
LOCK = "owner.lock"


class BrowserHome:
    """One directory, from its making until `remove`."""

    def __init__(self) -> None:
        base = Path(tempfile.gettempdir())
        making = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=base))
        self._lock = os.open(making / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Only now does it bear the name that sweepers look for: they never see it unlocked.
        self.path = making.rename(base / making.name.removeprefix("."))

    @contextlib.contextmanager
    def as_tmpdir(self) -> Iterator[None]:
        """Let processes that are started meanwhile put their temporary files here.

        Playwright has no option for it.
        Python's own choice is made before, so that this process's files stay where they were.
        """
        tempfile.gettempdir()
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = str(self.path)
        try:
            yield
        finally:
            if before is None:
                os.environ.pop("TMPDIR", None)
            else:
                os.environ["TMPDIR"] = before

    def remove(self) -> None:
        """End what still runs in the directory and delete it; safe to call twice."""
        if self._lock < 0:
            return
        _end_processes_of(self.path)
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
        self._lock = -1


def sweep_homes() -> int:
    """Remove the directories whose owners are gone; return how many."""
    removed = 0
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        lock = _lock_of_the_dead(path)
        if lock is None:
            continue
        _end_processes_of(path)
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)
        removed += 1
    return removed


def _lock_of_the_dead(path: Path) -> int | None:
    """Return the lock, taken, of a directory whose owner died; None where it lives."""
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


def _end_processes_of(home: Path) -> None:
    """Kill drivers and browsers that live in `home` (Linux; elsewhere a closed pipe ends them)."""
    for process in Path("/proc").glob("[0-9]*"):
        if _lives_in(process, str(home).encode()):
            with contextlib.suppress(OSError):
                os.kill(int(process.name), signal.SIGKILL)


def _lives_in(process: Path, home: bytes) -> bool:
    try:
        command = (process / "cmdline").read_bytes()
        if b"--user-data-dir=" + home in command:
            return True
        is_driver = command.rstrip(b"\0").endswith(b"run-driver")
        return is_driver and b"TMPDIR=" + home in (process / "environ").read_bytes()
    except OSError:
        return False
