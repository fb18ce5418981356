"""One writer a file, across processes; and what it is about to do, told before it does it.

The lock is an flock, so the kernel lets go of it when its holder dies. What the holder noted in the
locked file is then found by whoever comes next, and finished or taken back (`leftovers.py`).
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

from runners.workspace.errors import WriteConflict
from runners.workspace.writing.state_files import fsync_folder

_ASK_AGAIN_S = 0.01


class FileLock:
    """A lock that is held, with its note."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read_note(self) -> dict[str, Any] | None:
        """Return what an earlier holder noted and never cleared, or None."""
        try:
            noted = json.loads(os.pread(self._fd, 1 << 16, 0) or b"null")
        except ValueError:  # torn by a power failure: its files are swept by their age
            return None
        return noted if isinstance(noted, dict) else None

    def write_note(self, note: dict[str, Any]) -> None:
        """Note what is about to be done, durably: what it tells of outlives a power failure too."""
        self.clear_note()
        os.pwrite(self._fd, json.dumps(note).encode(), 0)
        os.fsync(self._fd)

    def clear_note(self) -> None:
        """Note that nothing is under way any more."""
        os.ftruncate(self._fd, 0)


def lock_name(name: str) -> str:
    """Return which of the 256 locks a file's is: two that share one wait for each other, no more.

    It is how the digest begins that names the file's snapshots (`snapshots.marks_of`).
    """
    return hashlib.sha256(name.encode()).hexdigest()[:2]


@contextlib.contextmanager
def hold_lock(state: Path, name: str, *, wait_s: float) -> Iterator[FileLock]:
    """Hold the lock of a file, by its name relative to the root, for the length of a block.

    Raises:
        WriteConflict: Somebody else held it for all of `wait_s`.
        OSError: The state folder cannot be written.
    """
    folder = state / "locks"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.ExitStack() as closing:
        deadline = time.monotonic() + wait_s
        while (held := try_lock(folder / lock_name(name), closing)) is None:
            if time.monotonic() >= deadline:
                raise WriteConflict("Another call is writing this file.", details={"path": name})
            time.sleep(_ASK_AGAIN_S)
        yield held


def try_lock(path: Path, closing: contextlib.ExitStack) -> FileLock | None:
    """Take a lock until `closing` ends, or return None where somebody else holds it."""
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
    closing.callback(os.close, fd)
    return FileLock(fd)
