"""Recover writes whose process crashed: each write took effect completely or is undone.

A writer records its pending write in the lock file before it begins, and clears the record when it
has finished. A process that acquires the lock and finds a record knows that the writer crashed,
because the kernel released its lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from runners.workspace.errors import DiskFailed, PathNotFound, WorkspaceFailed
from runners.workspace.files.paths import TEMPORARY
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.writing.file_lock import FileLock, try_lock
from runners.workspace.writing.idempotency_keys import delete_expired_keys
from runners.workspace.writing.previews import delete_expired_previews
from runners.workspace.writing.snapshots import (
    SNAPSHOT_ID,
    delete_incomplete_snapshots,
    discard_snapshot,
)
from runners.workspace.writing.state_files import list_names, mark_if_due

_DELETE_EVERY_S = 600


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write that has begun, as recorded in the lock file (the fields are the record's keys).

    Attributes:
        root, path: the file.
        was, becomes: digests of its content before and after (`content_digest`).
        size_limit: largest size in bytes of the file.
        snapshot_id: the snapshot of the content before.
        key_file: name of the file of the write's idempotency key, empty without a key.
        beside: name of the temporary file that is to be renamed over the file.
    """

    root: str
    path: str
    was: str
    becomes: str
    size_limit: int
    snapshot_id: str
    key_file: str
    beside: str

    def as_record(self) -> dict[str, Any]:
        """Return the record for the lock file."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self | None:
        """Return the pending write of a record, None if the record is invalid."""
        try:
            pending = cls(**record)
        except TypeError:
            return None
        texts = (value for name, value in record.items() if name != "size_limit")
        is_valid = isinstance(pending.size_limit, int) and all(
            isinstance(text, str) for text in texts
        )
        if not is_valid or TEMPORARY.fullmatch(pending.beside) is None:
            return None
        return pending if SNAPSHOT_ID.fullmatch(pending.snapshot_id) else None


def content_digest(content: bytes | None) -> str:
    """Return the digest of a file's content; None stands for a file that does not exist."""
    return "absent" if content is None else hashlib.sha256(content).hexdigest()


def finish_or_undo(state: Path, write: PendingWrite, *, is_own_write: bool = False) -> None:
    """Complete an interrupted write, or undo it: delete its snapshot and key if it did not happen.

    The caller holds the file's lock. Calling it twice is safe.

    Args:
        is_own_write: the write failed in this process, so any other content of the file is from
            another process.
    """
    if _was_not_written(write, is_own_write):
        discard_snapshot(state, write.snapshot_id)
        if write.key_file:
            (state / "keys" / Path(write.key_file).name).unlink(missing_ok=True)


def _was_not_written(write: PendingWrite, is_own_write: bool) -> bool:
    """Return whether the file was not written; remove the temporary file."""
    try:
        with Sandbox(Path(write.root), ()) as sandbox:
            # A temporary file that still exists was not renamed over the file.
            was_not_renamed = _remove_temporary(sandbox, write) or is_own_write
            current = _current_digest(sandbox, write)
    except DiskFailed:
        return False
    except WorkspaceFailed:  # it is not the file that this write would have created
        return is_own_write
    # The content is the same before and after, so only the temporary file shows what happened: a
    # write that was reported as failed must not be found as done under its key.
    if write.was == write.becomes:
        return was_not_renamed
    return current != write.becomes if was_not_renamed else current == write.was


def recover_pending(state: Path, lock: FileLock) -> None:
    """Recover the write that a crashed holder of the lock recorded, if there is one."""
    record = lock.read_record()
    if record is not None and (write := PendingWrite.from_record(record)) is not None:
        finish_or_undo(state, write)
    lock.clear_record()


def sweep_state(state: Path) -> None:
    """Recover the writes of crashed processes; every ten minutes, delete what has expired.

    Cheap if there is nothing to do. Several processes may call it at the same time.

    Raises:
        OSError: The state folder cannot be written.
    """
    for name in list_names(state / "locks"):
        path = state / "locks" / name
        if path.stat().st_size:
            with contextlib.ExitStack() as stack:
                if (lock := try_lock(path, stack)) is not None:
                    recover_pending(state, lock)
    _delete_expired(state)


def _delete_expired(state: Path) -> None:
    if not state.exists() or not mark_if_due(state / "swept", _DELETE_EVERY_S):
        return
    delete_expired_previews(state)
    delete_expired_keys(state)
    delete_incomplete_snapshots(state)


def _current_digest(sandbox: Sandbox, write: PendingWrite) -> str:
    try:
        return content_digest(sandbox.read(write.path, limit=write.size_limit))
    except PathNotFound:
        return content_digest(None)


def _remove_temporary(sandbox: Sandbox, write: PendingWrite) -> bool:
    """Remove the temporary file; return whether it existed."""
    try:
        folder = sandbox.open_dir(write.path.rpartition("/")[0] or ".")
    except WorkspaceFailed:
        return False
    try:
        os.unlink(write.beside, dir_fd=folder)
    except OSError:
        return False
    finally:
        os.close(folder)
    return True
