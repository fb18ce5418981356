"""A lock per file across processes, with a record of the write that its holder is about to do.

The lock is an flock, so the kernel releases it when its holder dies. The next holder finds the
record in the lock file and completes or undoes the write (`crash_recovery.py`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from runners.workspace.errors import WriteConflict
from runners.workspace.writing.state_files import fsync_folder

_POLL_S = 0.01


class FileLock:
    """A lock that this process holds, with the record in its file."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read_record(self) -> dict[str, Any] | None:
        """Return the record that an earlier holder left, or None."""
        try:
            record = orjson.loads(os.pread(self._fd, 1 << 16, 0) or b"null")
        except ValueError:  # torn by a power failure; what it left is deleted by its age
            return None
        return record if isinstance(record, dict) else None

    def write_record(self, record: dict[str, Any]) -> None:
        """Write the record durably: what follows may also survive a power failure."""
        self.clear_record()
        os.pwrite(self._fd, json.dumps(record).encode(), 0)
        os.fsync(self._fd)

    def clear_record(self) -> None:
        """Delete the record: no write is in progress."""
        os.ftruncate(self._fd, 0)


def lock_name(name: str) -> str:
    """Return the name of a file's lock, one of 256; files that share one wait for each other.

    It is a prefix of the digest in the ids of the file's snapshots (`snapshots.id_prefix_for`).
    """
    return hashlib.sha256(name.encode()).hexdigest()[:2]


@contextlib.contextmanager
def hold_lock(state: Path, name: str, *, wait_s: float) -> Iterator[FileLock]:
    """Hold the lock of a file, given by its path relative to the root, during the block.

    Raises:
        WriteConflict: Another writer held it for all of `wait_s`.
        OSError: The state folder cannot be written.
    """
    folder = state / "locks"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        deadline = time.monotonic() + wait_s
        while (lock := try_lock(folder / lock_name(name), stack)) is None:
            if time.monotonic() >= deadline:
                raise WriteConflict("Another call is writing this file.", details={"path": name})
            time.sleep(_POLL_S)
        yield lock


def try_lock(path: Path, stack: contextlib.ExitStack) -> FileLock | None:
    """Acquire a lock until the stack is closed; return None if another writer holds it."""
    is_new = not path.exists()
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if is_new:
            fsync_folder(path.parent)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    stack.callback(os.close, fd)
    return FileLock(fd)
