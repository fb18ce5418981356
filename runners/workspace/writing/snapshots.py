"""Snapshots: the content of files before they were written, each in two files of the state folder.

    snap_20251101T093210_ab12cd34.txt        the content, empty if the file did not exist
    snap_20251101T093210_ab12cd34.meta.json  path, time, and a prefix of the content's digest

A snapshot exists only if both files do, so an interrupted write leaves none. The first four of the
eight hex digits of an id are derived from the file's path, so that the snapshots of one file are
found by name.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import secrets
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runners.workspace.errors import (
    BadArguments,
    ParseFailed,
    PathDenied,
    PathNotFound,
    WorkspaceFailed,
)
from runners.workspace.files.paths import forbidden_names, split_path
from runners.workspace.writing.state_files import (
    DRAFT_PREFIX,
    files_older_than,
    list_names,
    write_atomically,
)

SNAPSHOT_ID = re.compile(r"snap_[0-9]{8}T[0-9]{6}_[0-9a-f]{8}")
DEFAULT_LIMIT, MAX_LIMIT = 50, 1000
_SECOND_LENGTH = len("snap_20251101T093210")
_META, _TEXT = ".meta.json", ".txt"
_MAX_TIMESTAMP = 253_402_300_800_000  # the year 10000 in milliseconds
_INCOMPLETE_S = 3600  # until this age, the writer of an incomplete snapshot may still be at work


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The metadata of a snapshot.

    Attributes:
        path: of the file, relative to the root.
        timestamp: Unix time in ms; strictly rising per file, even if the clock is set back.
        content_hash: the first 8 hex digits of the content's sha256.
        existed: the file existed.
    """

    id: str
    path: str
    timestamp: int
    content_hash: str
    idempotency_key: str | None = None
    existed: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return the snapshot in the form of list_snapshots (S4 §2.4)."""
        meta: dict[str, Any] = {
            "id": self.id,
            "path": self.path,
            "timestamp": self.timestamp,
            "contentHash": self.content_hash,
        }
        return (
            meta
            if self.idempotency_key is None
            else meta | {"idempotencyKey": self.idempotency_key}
        )


def draft_snapshot(
    state: Path, *, path: str, content: bytes | None, idempotency_key: str | None = None
) -> Snapshot:
    """Return the metadata of a new snapshot; it is not stored. The caller holds the file's lock."""
    names = _names_for(state, path)
    newest = max(
        (
            snapshot.timestamp
            for snapshot in _read_each(state, _complete_ids(names))
            if snapshot.path == path
        ),
        default=-1,
    )
    timestamp = max(time.time_ns() // 1_000_000, newest + 1)
    at = datetime.fromtimestamp(timestamp / 1000, UTC).strftime("%Y%m%dT%H%M%S")
    candidates = (f"snap_{at}_{id_prefix_for(path)}{secrets.token_hex(2)}" for _ in range(1000))
    free = next((new_id for new_id in candidates if new_id + _TEXT not in names), None)
    if free is None:
        raise WorkspaceFailed(
            "There are too many snapshots of this file within one second; try again."
        )
    digest = hashlib.sha256(content or b"").hexdigest()
    return Snapshot(free, path, timestamp, digest[:8], idempotency_key, content is not None)


def store_snapshot(state: Path, snapshot: Snapshot, content: bytes) -> None:
    """Store a drafted snapshot atomically and durably.

    Raises:
        OSError: The disk is full or failed.
    """
    folder = _folder(state)
    write_atomically(folder / (snapshot.id + _TEXT), content)
    meta = snapshot.as_dict() | {"existed": snapshot.existed}
    write_atomically(folder / (snapshot.id + _META), json.dumps(meta, ensure_ascii=False).encode())


def discard_snapshot(state: Path, snapshot_id: str) -> None:
    """Delete a snapshot; do nothing if it does not exist."""
    for ending in (_META, _TEXT):  # in this order: without its metadata it is not a snapshot
        (_folder(state) / (snapshot_id + ending)).unlink(missing_ok=True)


def prune_snapshots(state: Path, path: str, *, keep: int) -> None:
    """Delete all snapshots of a file except the `keep` newest."""
    for snapshot in list_file_snapshots(state, path)[max(0, keep) :]:
        discard_snapshot(state, snapshot.id)


def list_snapshots(
    state: Path,
    *,
    limit: float = DEFAULT_LIMIT,
    path: str | None = None,
    forbidden: Collection[str] = (),
) -> list[Snapshot]:
    """Return snapshots, newest first; invalid ones are skipped.

    Args:
        limit: maximum number; a negative value means 50.
        path: prefix of their paths, case-sensitive.
        forbidden: names that are forbidden now; snapshots of such paths are skipped.

    Raises:
        BadArguments: The limit is over 1000.
        WorkspaceFailed: The folder cannot be read.
    """
    if limit > MAX_LIMIT:
        raise BadArguments(f"limit must be at most {MAX_LIMIT}.")
    count = DEFAULT_LIMIT if limit < 0 else int(limit)
    found: list[Snapshot] = []
    newest = sorted(_complete_ids(_names(state)), reverse=True)
    # Ids begin with the time in seconds, so only as many as needed are read.
    for _, of_second in itertools.groupby(newest, key=lambda name: name[:_SECOND_LENGTH]):
        if len(found) >= count:
            break
        found += [
            snapshot
            for snapshot in _read_each(state, of_second)
            if (path is None or snapshot.path.startswith(path))
            and is_path_allowed(snapshot.path, forbidden)
        ]
    return _newest_first(found)[:count]


def is_path_allowed(path: str, forbidden: Collection[str]) -> bool:
    """Return whether tools may use a path under the current policy."""
    try:
        split_path(path, forbidden_names(frozenset(forbidden)))
    except (PathDenied, BadArguments):
        return False
    return True


def iter_snapshots(state: Path) -> Iterator[Snapshot]:
    """Yield every valid snapshot, unordered."""
    yield from _read_each(state, _complete_ids(_names(state)))


def snapshot_size_bytes(state: Path, snapshot_id: str) -> int:
    """Return the size of a snapshot's content; 0 if it was deleted meanwhile."""
    try:
        return (_folder(state) / (snapshot_id + _TEXT)).stat().st_size
    except FileNotFoundError:
        return 0


def list_file_snapshots(state: Path, path: str) -> list[Snapshot]:
    """Return the snapshots of one file, newest first."""
    found = _read_each(state, _complete_ids(_names_for(state, path)))
    return _newest_first(snapshot for snapshot in found if snapshot.path == path)


def read_snapshot(
    state: Path, snapshot_id: str, *, forbidden: Collection[str] = ()
) -> tuple[Snapshot, str]:
    """Return a snapshot and its content, which is empty if the file did not exist.

    Args:
        forbidden: names that are forbidden now.

    Raises:
        BadArguments: The id is malformed.
        PathNotFound: There is no such snapshot, or it is incomplete.
        ParseFailed: Its metadata is invalid, or the content does not match its hash.
        PathDenied: Its path is forbidden now.
        WorkspaceFailed: It cannot be read.
    """
    if SNAPSHOT_ID.fullmatch(snapshot_id) is None:
        raise BadArguments("snapshotId must have the form snap_YYYYMMDDThhmmss_<8hex>.")
    details = {"snapshotId": snapshot_id}
    folder = _folder(state)
    try:
        meta = (folder / (snapshot_id + _META)).read_bytes()
        content = (folder / (snapshot_id + _TEXT)).read_bytes()
    except FileNotFoundError:
        raise PathNotFound(f"The snapshot {snapshot_id} does not exist.", details=details) from None
    except OSError as exc:
        raise _unreadable(exc) from None
    found = _parsed(snapshot_id, meta)
    if found is None:
        raise ParseFailed(f"The metadata of {snapshot_id} is invalid.", details=details)
    if not hashlib.sha256(content).hexdigest().startswith(found.content_hash):
        raise ParseFailed(f"The content of {snapshot_id} does not match its hash.", details=details)
    if not is_path_allowed(found.path, forbidden):
        raise PathDenied("The path of this snapshot is forbidden now.")
    try:
        return found, content.decode()
    except UnicodeDecodeError:
        raise ParseFailed(f"The content of {snapshot_id} is not text.", details=details) from None


def snapshot_digest(snapshot: Snapshot, content: str) -> str:
    """Return the digest of a snapshot's path and content: for what a person confirms."""
    return hashlib.sha256(json.dumps([snapshot.id, snapshot.path, content]).encode()).hexdigest()


def delete_incomplete_snapshots(state: Path) -> None:
    """Delete what crashed writers left: drafts, and snapshots with one of their two files."""
    folder = _folder(state)
    names = set(list_names(folder))
    for path in files_older_than(folder, _INCOMPLETE_S):
        stem, _, ending = path.name.partition(".")
        other = stem + (_TEXT if ending == _META[1:] else _META)
        if path.name.startswith(DRAFT_PREFIX) or (
            SNAPSHOT_ID.fullmatch(stem) and other not in names
        ):
            path.unlink(missing_ok=True)


def id_prefix_for(path: str) -> str:
    """Return the four hex digits, derived from a path, in the ids of its snapshots."""
    return hashlib.sha256(path.encode()).hexdigest()[:4]


def _folder(state: Path) -> Path:
    return state / "snapshots"


def _names(state: Path) -> set[str]:
    try:
        return set(list_names(_folder(state)))
    except OSError as exc:
        raise _unreadable(exc) from None


def _names_for(state: Path, path: str) -> set[str]:
    marks = id_prefix_for(path)
    return {name for name in _names(state) if name[21:25] == marks}


def _complete_ids(names: set[str]) -> list[str]:
    """Return the ids of the snapshots that have both files."""
    ids = (name.removesuffix(_META) for name in names if name.endswith(_META))
    return [one for one in ids if one + _TEXT in names]


def _read_each(state: Path, ids: Iterable[str]) -> Iterator[Snapshot]:
    """Yield the valid ones of these snapshots."""
    for snapshot_id in ids:
        try:
            meta = (_folder(state) / (snapshot_id + _META)).read_bytes()
        except FileNotFoundError:  # deleted meanwhile
            continue
        except OSError as exc:
            raise _unreadable(exc) from None
        if (found := _parsed(snapshot_id, meta)) is not None:
            yield found


def _parsed(snapshot_id: str, data: bytes) -> Snapshot | None:
    """Return the snapshot of a .meta.json, None if it is invalid."""
    try:
        meta = json.loads(data)
        path, at, digest = meta["path"], meta["timestamp"], meta["contentHash"]
        key, existed = meta.get("idempotencyKey"), meta.get("existed", True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    is_valid = (
        SNAPSHOT_ID.fullmatch(snapshot_id) is not None
        and meta.get("id") == snapshot_id
        and isinstance(path, str)
        and isinstance(at, int | float)
        and 0 <= at < _MAX_TIMESTAMP
        and isinstance(digest, str)
        and re.fullmatch(r"[0-9a-f]{8}", digest) is not None
        and isinstance(key, str | None)
    )
    return Snapshot(snapshot_id, path, int(at), digest, key, bool(existed)) if is_valid else None


def _newest_first(found: Iterable[Snapshot]) -> list[Snapshot]:
    return sorted(found, key=lambda snapshot: (snapshot.timestamp, snapshot.id), reverse=True)


def _unreadable(exc: OSError) -> WorkspaceFailed:
    return WorkspaceFailed(f"The snapshots cannot be read: {exc.strerror}.")
