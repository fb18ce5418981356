"""Delete old snapshots of deleted files, which no later write of the file would prune.

Limits apply to the snapshots of all deleted files together; the oldest are deleted first. A file
counts as deleted since the first check that did not find it; this time is stored in `deleted.json`.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from runners.workspace.errors import PathNotFound, WorkspaceFailed
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.writing.file_lock import lock_name, try_lock
from runners.workspace.writing.snapshots import (
    Snapshot,
    discard_snapshot,
    iter_snapshots,
    snapshot_size_bytes,
)
from runners.workspace.writing.state_files import mark_if_due, write_atomically

_EVERY_S = 3600
_ROOT, _DELETED_AT = "root", "deleted.json"


@dataclass(frozen=True, slots=True)
class DeletedFileLimits:
    """Limits on the snapshots of a workspace's deleted files: number, bytes in total, and seconds
    since the deletion.
    """

    count: int
    size_bytes: int
    seconds: float


def record_root(state: Path, root: Path) -> None:
    """Record which root a state folder belongs to, for maintenance jobs that have no workspace.

    Raises:
        OSError: The state folder cannot be written.
    """
    if not (state / _ROOT).exists():
        write_atomically(state / _ROOT, os.fsencode(root))


def prune_deleted_files(state: Path, limits: DeletedFileLimits) -> None:
    """Delete, at most once an hour, snapshots of deleted files that exceed the limits.

    Does nothing if the root cannot be read or is empty: its disk may not be mounted, and then no
    file was deleted.

    Raises:
        OSError: The state folder cannot be written.
    """
    try:
        root = Path(os.fsdecode((state / _ROOT).read_bytes()))
    except FileNotFoundError:
        return  # no file was written yet
    if not mark_if_due(state / "deleted", _EVERY_S):
        return
    with contextlib.suppress(WorkspaceFailed), Sandbox(root, ()) as sandbox:
        if any(root.iterdir()):
            _prune(state, sandbox, limits)


def _prune(state: Path, sandbox: Sandbox, limits: DeletedFileLimits) -> None:
    snapshots = list(iter_snapshots(state))
    deleted = {
        path for path in {snapshot.path for snapshot in snapshots} if _is_deleted(sandbox, path)
    }
    since = _deleted_since(state, deleted)
    of_deleted = sorted(
        (snapshot for snapshot in snapshots if snapshot.path in deleted),
        key=lambda snapshot: (snapshot.timestamp, snapshot.id),
    )
    too_old = time.time() - limits.seconds
    to_delete = [snapshot for snapshot in of_deleted if since[snapshot.path] < too_old]
    remaining = [snapshot for snapshot in of_deleted if since[snapshot.path] >= too_old]
    to_delete += remaining[: len(remaining) - _count_within(state, remaining, limits)]
    for snapshot in to_delete:
        _discard(state, sandbox, snapshot)


def _count_within(state: Path, oldest_first: Sequence[Snapshot], limits: DeletedFileLimits) -> int:
    """Return how many of the newest snapshots are within the limits."""
    count = size = 0
    for snapshot in reversed(oldest_first):
        size += snapshot_size_bytes(state, snapshot.id)
        if count == limits.count or size > limits.size_bytes:
            break
        count += 1
    return count


def _discard(state: Path, sandbox: Sandbox, snapshot: Snapshot) -> None:
    """Delete a snapshot, unless its file is being written or exists again."""
    with contextlib.ExitStack() as stack:
        lock = try_lock(state / "locks" / lock_name(snapshot.path), stack)
        if lock is not None and _is_deleted(sandbox, snapshot.path):
            discard_snapshot(state, snapshot.id)


def _is_deleted(sandbox: Sandbox, path: str) -> bool:
    try:
        sandbox.stat(path)
    except PathNotFound:
        return True
    except WorkspaceFailed:  # it exists as something else, or cannot be checked
        return False
    return False


def _deleted_since(state: Path, deleted: set[str]) -> dict[str, float]:
    """Return when each of these files was first found to be deleted, and store it."""
    now = time.time()
    try:
        before = orjson.loads((state / _DELETED_AT).read_bytes())
    except (FileNotFoundError, ValueError):
        before = {}
    known = before if isinstance(before, dict) else {}
    since = {path: _timestamp(known.get(path), now) for path in deleted}
    if since != known:
        write_atomically(state / _DELETED_AT, json.dumps(since, ensure_ascii=False).encode())
    return since


def _timestamp(recorded: object, now: float) -> float:
    """Return a stored time; now if it is missing or in the future (the clock was changed)."""
    return min(float(recorded), now) if isinstance(recorded, int | float) else now
