"""Snapshots of files that are not there any more: nothing is written to such a file, so nothing
would ever make room for them.

Beyond limits that hold for all of them together the oldest go. How long a file has been gone is
counted from the first look that did not find it, which is noted in `deleted.json`.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
_ROOT, _NOTED = "root", "deleted.json"


@dataclass(frozen=True, slots=True)
class DeletedFileLimits:
    """What is kept of a workspace's deleted files: so many snapshots, of so many bytes together,
    for so many seconds after the file was gone.
    """

    count: int
    size_bytes: int
    seconds: float


def record_root(state: Path, root: Path) -> None:
    """Note which folder this state is of, for those who come without a call.

    Raises:
        OSError: The state folder cannot be written.
    """
    if not (state / _ROOT).exists():
        write_atomically(state / _ROOT, os.fsencode(root))


def prune_deleted_files(state: Path, kept: DeletedFileLimits) -> None:
    """Delete, once an hour, what is over the limits; snapshots of files that are there stay.

    Does nothing where the folder cannot be looked at, or is empty: a disk that is not mounted has
    lost no file.

    Raises:
        OSError: The state folder cannot be written.
    """
    try:
        root = Path(os.fsdecode((state / _ROOT).read_bytes()))
    except FileNotFoundError:
        return  # nothing was written yet
    if not mark_if_due(state / "deleted", _EVERY_S):
        return
    with contextlib.suppress(WorkspaceFailed), Sandbox(root, ()) as sandbox:
        if any(root.iterdir()):
            _prune(state, sandbox, kept)


def _prune(state: Path, sandbox: Sandbox, kept: DeletedFileLimits) -> None:
    found = list(iter_snapshots(state))
    gone = {path for path in {one.path for one in found} if _is_gone(sandbox, path)}
    since = _noted(state, gone)
    of_gone = sorted(
        (one for one in found if one.path in gone), key=lambda one: (one.timestamp, one.id)
    )
    too_old = time.time() - kept.seconds
    doomed = [one for one in of_gone if since[one.path] < too_old]
    rest = [one for one in of_gone if since[one.path] >= too_old]
    doomed += rest[: len(rest) - _how_many_fit(state, rest, kept)]
    for one in doomed:
        _discard(state, sandbox, one)


def _how_many_fit(state: Path, oldest_first: Sequence[Snapshot], kept: DeletedFileLimits) -> int:
    """Return how many of the newest are within the limits."""
    fit = size = 0
    for one in reversed(oldest_first):
        size += snapshot_size_bytes(state, one.id)
        if fit == kept.count or size > kept.size_bytes:
            break
        fit += 1
    return fit


def _discard(state: Path, sandbox: Sandbox, snapshot: Snapshot) -> None:
    """Delete a snapshot, unless its file is being written, or is there again."""
    with contextlib.ExitStack() as closing:
        lock = try_lock(state / "locks" / lock_name(snapshot.path), closing)
        if lock is not None and _is_gone(sandbox, snapshot.path):
            discard_snapshot(state, snapshot.id)


def _is_gone(sandbox: Sandbox, path: str) -> bool:
    try:
        sandbox.stat(path)
    except PathNotFound:
        return True
    except WorkspaceFailed:  # something is there, or cannot be looked at
        return False
    return False


def _noted(state: Path, gone: set[str]) -> dict[str, float]:
    """Return since when each of these files is known to be gone, and note it."""
    now = time.time()
    try:
        before = json.loads((state / _NOTED).read_bytes())
    except (FileNotFoundError, ValueError):
        before = {}
    known = before if isinstance(before, dict) else {}
    since = {path: _seconds(known.get(path), now) for path in gone}
    if since != known:
        write_atomically(state / _NOTED, json.dumps(since, ensure_ascii=False).encode())
    return since


def _seconds(noted: object, now: float) -> float:
    """Return a noted time; now where there is none, or it lies in what a clock calls the future."""
    return min(float(noted), now) if isinstance(noted, int | float) else now
