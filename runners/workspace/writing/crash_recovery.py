"""What a writer that died left, and its end: a write happened or not, and nothing lies about.

A writer notes in its file's lock what it is about to do. Who finds the note of another knows that
this one died, for the lock was free.
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

_OLD_THINGS_EVERY_S = 600


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write that was begun.

    Attributes:
        root, path: which file.
        was, becomes: digests of its content before and after (`digest_of`).
        size_limit: bytes that it could have at most.
        snapshot_id: of what it was.
        key_file: where the write's idempotency key is kept, empty where it has none.
        beside: the temporary file that is to take its place.
    """

    root: str
    path: str
    was: str
    becomes: str
    size_limit: int
    snapshot_id: str
    key_file: str
    beside: str

    def as_note(self) -> dict[str, Any]:
        """Return it as the lock keeps it."""
        return asdict(self)

    @classmethod
    def from_note(cls, note: dict[str, Any]) -> Self | None:
        """Return what a note tells, or None where it is none of ours."""
        try:
            told = cls(**note)
        except TypeError:
            return None
        texts = (value for name, value in note.items() if name != "size_limit")
        sound = isinstance(told.size_limit, int) and all(isinstance(one, str) for one in texts)
        if not sound or TEMPORARY.fullmatch(told.beside) is None:
            return None
        return told if SNAPSHOT_ID.fullmatch(told.snapshot_id) else None


def content_digest(content: bytes | None) -> str:
    """Return what tells a file's content from every other; None is no file."""
    return "absent" if content is None else hashlib.sha256(content).hexdigest()


def finish_or_undo(state: Path, write: PendingWrite, *, is_ours: bool = False) -> None:
    """End a write that broke off, its lock held: its snapshot and key stay only if it happened.

    Safe to repeat.

    Args:
        is_ours: it failed just now, here: whatever else the file holds came from somebody else.
    """
    if _is_undone(write, is_ours):
        discard_snapshot(state, write.snapshot_id)
        if write.key_file:
            (state / "keys" / Path(write.key_file).name).unlink(missing_ok=True)


def _is_undone(write: PendingWrite, is_ours: bool) -> bool:
    """Tell whether the file was not written, and take the temporary file away."""
    try:
        with Sandbox(Path(write.root), ()) as sandbox:
            # What was to take the file's place and is still there did not take it.
            is_known = _remove_beside(sandbox, write) or is_ours
            now = _content_now(sandbox, write)
    except DiskFailed:
        return False
    except WorkspaceFailed:  # it is not what we would have written
        return is_ours
    if write.was == write.becomes:  # nothing shows: a failure that was told of must not be a done
        return is_known
    return now != write.becomes if is_known else now == write.was


def recover_pending(state: Path, lock: FileLock) -> None:
    """Finish what an earlier holder of a lock noted, if it did."""
    note = lock.read_note()
    if note is not None and (write := PendingWrite.from_note(note)) is not None:
        finish_or_undo(state, write)
    lock.clear_note()


def sweep_state(state: Path) -> None:
    """End the writes of writers that died, and from time to time what is too old.

    Cheap where there is nothing to do; any number of processes may do it at once.

    Raises:
        OSError: The state folder cannot be written.
    """
    for name in list_names(state / "locks"):
        path = state / "locks" / name
        if path.stat().st_size:
            with contextlib.ExitStack() as closing:
                if (lock := try_lock(path, closing)) is not None:
                    recover_pending(state, lock)
    _sweep_what_is_old(state)


def _sweep_what_is_old(state: Path) -> None:
    if not state.exists() or not mark_if_due(state / "swept", _OLD_THINGS_EVERY_S):
        return
    delete_expired_previews(state)
    delete_expired_keys(state)
    delete_incomplete_snapshots(state)


def _content_now(sandbox: Sandbox, write: PendingWrite) -> str:
    try:
        return content_digest(sandbox.read(write.path, limit=write.size_limit))
    except PathNotFound:
        return content_digest(None)


def _remove_beside(sandbox: Sandbox, write: PendingWrite) -> bool:
    """Take the temporary file away; tell whether it was there."""
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
