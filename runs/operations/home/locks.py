"""flock locks on files in CONTINUITY_HOME; the system releases them when their process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from runs.operations.home.paths import HomePaths, home_paths


def open_lock(path: Path) -> int:
    """Open a lock file, creating it if needed; child processes do not inherit the descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(path: Path) -> int | None:
    """Take the exclusive lock and return its descriptor; None if it is held.

    The lock is held until every copy of the descriptor, also in other processes, is closed.
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
    """Wait for the exclusive lock and hold it during the block."""
    fd = open_lock(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def is_held(path: Path) -> bool:
    """Return whether a process holds the exclusive lock."""
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


@contextlib.contextmanager
def membership(paths: HomePaths | None = None) -> Iterator[None]:
    """Keep a background stack from stopping as idle during the block.

    It is a shared lock, so any number of processes can be members. It does not start the stack: see
    `ensure_stack`.
    """
    path = (paths or home_paths()).members_lock
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = open_lock(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


def member_pids(path: Path) -> list[int] | None:
    """Return the processes with a shared lock on the file; None if the system cannot list them."""
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
