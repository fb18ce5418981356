"""Locks that end with their holder, however it ends: flock on files under CONTINUITY_HOME."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from runs.installation.home.paths import HomePaths, home_paths


def open_lock(path: Path) -> int:
    """Open a lock file, made when missing; children do not inherit it unless it is passed on."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(path: Path) -> int | None:
    """Take the lock for this process alone; None when somebody has it.

    The lock lives as long as any copy of the returned descriptor is open, in whatever process.
    """
    fd = open_lock(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock for the length of a block, waiting for it first."""
    fd = open_lock(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def is_held(path: Path) -> bool:
    """Tell whether somebody holds the lock for himself alone."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(fd)


class Membership:
    """The wish that the stack stays up, held for the length of a `with` block by any number.

    It ends with the process at the latest. Holding it starts nothing: see `ensure_stack`.
    """

    def __init__(self, at: HomePaths | None = None) -> None:
        self._path = (at or home_paths()).members_lock
        self._fd: int | None = None

    def __enter__(self) -> Membership:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = open_lock(self._path)
        fcntl.flock(self._fd, fcntl.LOCK_SH)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def member_pids(path: Path) -> list[int] | None:
    """Return who holds a shared lock on the file; None where the system does not tell."""
    try:
        inode = path.stat().st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None if not Path("/proc/locks").exists() else []
    found = set()
    for line in lines:
        fields = line.split()  # 1: FLOCK ADVISORY READ 4242 08:01:1234 0 EOF
        if fields[1] == "FLOCK" and fields[3] == "READ" and fields[5].endswith(f":{inode}"):
            found.add(int(fields[4]))
    return sorted(found)
