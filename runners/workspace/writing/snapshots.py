"""What files were before they were written: a text and what is known about it, each in a file.

    snap_20251101T093210_ab12cd34.txt        the content, empty where there was no file
    snap_20251101T093210_ab12cd34.meta.json  its path, when, how it begins its digest

A snapshot is there once both are, so one that was cut off half-way is no snapshot. The first four
characters of its mark are its file's, so all of one file are found by their names.
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
    DRAFT,
    files_older_than,
    list_names,
    write_atomically,
)

SNAPSHOT_ID = re.compile(r"snap_[0-9]{8}T[0-9]{6}_[0-9a-f]{8}")
DEFAULT_LIMIT, MAX_LIMIT = 50, 1000
_SECOND = len("snap_20251101T093210")
_META, _TEXT = ".meta.json", ".txt"
_END_OF_TIME = 253_402_300_800_000  # the year 10000 in milliseconds
_HALF_S = 3600  # until then a half snapshot may still be made whole by its writer


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known about a snapshot.

    Attributes:
        path: of the file, relative to the root.
        timestamp: Unix milliseconds; of one file they rise, whatever the clock does.
        content_hash: how the sha256 of the content begins, 8 characters.
        existed: there was a file.
    """

    id: str
    path: str
    timestamp: int
    content_hash: str
    idempotency_key: str | None = None
    existed: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return it as list_snapshots tells it."""
        told: dict[str, Any] = {
            "id": self.id,
            "path": self.path,
            "timestamp": self.timestamp,
            "contentHash": self.content_hash,
        }
        return (
            told
            if self.idempotency_key is None
            else told | {"idempotencyKey": self.idempotency_key}
        )


def draft_snapshot(
    state: Path, *, path: str, content: bytes | None, idempotency_key: str | None = None
) -> Snapshot:
    """Return a new snapshot of a file, not kept yet; its lock is held meanwhile."""
    names = _names_of(state, path)
    newest = max(
        (one.timestamp for one in _read_each(state, _whole_ones(names)) if one.path == path),
        default=-1,
    )
    timestamp = max(time.time_ns() // 1_000_000, newest + 1)
    at = datetime.fromtimestamp(timestamp / 1000, UTC).strftime("%Y%m%dT%H%M%S")
    made = (f"snap_{at}_{id_prefix_for(path)}{secrets.token_hex(2)}" for _ in range(1000))
    free = next((one for one in made if one + _TEXT not in names), None)
    if free is None:
        raise WorkspaceFailed("No snapshot can be named: too many of this file in one second.")
    digest = hashlib.sha256(content or b"").hexdigest()
    return Snapshot(free, path, timestamp, digest[:8], idempotency_key, content is not None)


def store_snapshot(state: Path, snapshot: Snapshot, content: bytes) -> None:
    """Keep a drafted snapshot durably; it is there whole or not at all.

    Raises:
        OSError: The disk is full or refuses.
    """
    folder = _folder(state)
    write_atomically(folder / (snapshot.id + _TEXT), content)
    told = snapshot.as_dict() | {"existed": snapshot.existed}
    write_atomically(folder / (snapshot.id + _META), json.dumps(told, ensure_ascii=False).encode())


def discard_snapshot(state: Path, snapshot_id: str) -> None:
    """Delete a snapshot; one that is not there is no trouble."""
    for ending in (_META, _TEXT):  # in this order: what is left half-way is no snapshot
        (_folder(state) / (snapshot_id + ending)).unlink(missing_ok=True)


def prune_snapshots(state: Path, path: str, *, keep: int) -> None:
    """Delete all but the newest snapshots of a file."""
    for one in list_file_snapshots(state, path)[max(0, keep) :]:
        discard_snapshot(state, one.id)


def list_snapshots(
    state: Path,
    *,
    limit: float = DEFAULT_LIMIT,
    path: str | None = None,
    forbidden: Collection[str] = (),
) -> list[Snapshot]:
    """Return snapshots, newest first; broken ones are skipped.

    Args:
        limit: how many at most; a negative one means 50.
        path: how their paths begin, case-sensitive.
        forbidden: names that a path must not have by now; its snapshots are skipped.

    Raises:
        BadArguments: The limit is over 1000.
        WorkspaceFailed: The folder cannot be read.
    """
    if limit > MAX_LIMIT:
        raise BadArguments(f"limit is at most {MAX_LIMIT}.")
    most = DEFAULT_LIMIT if limit < 0 else int(limit)
    found: list[Snapshot] = []
    newest = sorted(_whole_ones(_listed(state)), reverse=True)
    # Ids begin with their second: what is older than enough of them is not read at all.
    for _, of_second in itertools.groupby(newest, key=lambda name: name[:_SECOND]):
        if len(found) >= most:
            break
        found += [
            one
            for one in _read_each(state, of_second)
            if (path is None or one.path.startswith(path)) and is_path_allowed(one.path, forbidden)
        ]
    return _newest_first(found)[:most]


def is_path_allowed(path: str, forbidden: Collection[str]) -> bool:
    """Tell whether tools may name a file, as the policy is now."""
    try:
        split_path(path, forbidden_names(frozenset(forbidden)))
    except (PathDenied, BadArguments):
        return False
    return True


def iter_snapshots(state: Path) -> Iterator[Snapshot]:
    """Yield every snapshot that is not broken, in no order."""
    yield from _read_each(state, _whole_ones(_listed(state)))


def snapshot_size_bytes(state: Path, snapshot_id: str) -> int:
    """Return the bytes of a snapshot's content; none where it went meanwhile."""
    try:
        return (_folder(state) / (snapshot_id + _TEXT)).stat().st_size
    except FileNotFoundError:
        return 0


def list_file_snapshots(state: Path, path: str) -> list[Snapshot]:
    """Return the snapshots of one file, newest first."""
    found = _read_each(state, _whole_ones(_names_of(state, path)))
    return _newest_first(one for one in found if one.path == path)


def read_snapshot(
    state: Path, snapshot_id: str, *, forbidden: Collection[str] = ()
) -> tuple[Snapshot, str]:
    """Return a snapshot and its content, empty where there was no file.

    Args:
        forbidden: names that its path must not have by now.

    Raises:
        BadArguments: That is no snapshot's id.
        PathNotFound: There is none, or only half of one.
        ParseFailed: What is known about it is broken, or the content is not what it was.
        PathDenied: Its file is forbidden by now.
        WorkspaceFailed: It cannot be read.
    """
    if SNAPSHOT_ID.fullmatch(snapshot_id) is None:
        raise BadArguments("snapshotId is not of the form snap_YYYYMMDDThhmmss_<8hex>.")
    about = {"snapshotId": snapshot_id}
    folder = _folder(state)
    try:
        meta = (folder / (snapshot_id + _META)).read_bytes()
        content = (folder / (snapshot_id + _TEXT)).read_bytes()
    except FileNotFoundError:
        raise PathNotFound(f"There is no snapshot {snapshot_id}.", details=about) from None
    except OSError as exc:
        raise _unreadable(exc) from None
    found = _parsed(snapshot_id, meta)
    if found is None:
        raise ParseFailed(f"What is known about {snapshot_id} is broken.", details=about)
    if not hashlib.sha256(content).hexdigest().startswith(found.content_hash):
        raise ParseFailed(f"The content of {snapshot_id} is not what it was.", details=about)
    if not is_path_allowed(found.path, forbidden):
        raise PathDenied("The file of this snapshot is forbidden by now.")
    try:
        return found, content.decode()
    except UnicodeDecodeError:
        raise ParseFailed(f"The content of {snapshot_id} is no text.", details=about) from None


def delete_incomplete_snapshots(state: Path) -> None:
    """Delete what writers that died left: drafts, and halves of snapshots."""
    folder = _folder(state)
    names = set(list_names(folder))
    for path in files_older_than(folder, _HALF_S):
        stem, _, ending = path.name.partition(".")
        other = stem + (_TEXT if ending == _META[1:] else _META)
        if path.name.startswith(DRAFT) or (SNAPSHOT_ID.fullmatch(stem) and other not in names):
            path.unlink(missing_ok=True)


def id_prefix_for(path: str) -> str:
    """Return the four characters that the marks of a file's snapshots begin with."""
    return hashlib.sha256(path.encode()).hexdigest()[:4]


def _folder(state: Path) -> Path:
    return state / "snapshots"


def _listed(state: Path) -> set[str]:
    try:
        return set(list_names(_folder(state)))
    except OSError as exc:
        raise _unreadable(exc) from None


def _names_of(state: Path, path: str) -> set[str]:
    marks = id_prefix_for(path)
    return {name for name in _listed(state) if name[21:25] == marks}


def _whole_ones(names: set[str]) -> list[str]:
    """Return the ids of the snapshots whose files are both there."""
    ids = (name.removesuffix(_META) for name in names if name.endswith(_META))
    return [one for one in ids if one + _TEXT in names]


def _read_each(state: Path, ids: Iterable[str]) -> Iterator[Snapshot]:
    """Yield those of these snapshots that are not broken."""
    for snapshot_id in ids:
        try:
            meta = (_folder(state) / (snapshot_id + _META)).read_bytes()
        except FileNotFoundError:  # pruned meanwhile
            continue
        except OSError as exc:
            raise _unreadable(exc) from None
        if (found := _parsed(snapshot_id, meta)) is not None:
            yield found


def _parsed(snapshot_id: str, meta: bytes) -> Snapshot | None:
    """Return what a .meta.json says, or None where it is broken."""
    try:
        told = json.loads(meta)
        path, at, digest = told["path"], told["timestamp"], told["contentHash"]
        key, existed = told.get("idempotencyKey"), told.get("existed", True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    sound = (
        SNAPSHOT_ID.fullmatch(snapshot_id) is not None
        and told.get("id") == snapshot_id
        and isinstance(path, str)
        and isinstance(at, int | float)
        and 0 <= at < _END_OF_TIME
        and isinstance(digest, str)
        and re.fullmatch(r"[0-9a-f]{8}", digest) is not None
        and isinstance(key, str | None)
    )
    return Snapshot(snapshot_id, path, int(at), digest, key, bool(existed)) if sound else None


def _newest_first(found: Iterable[Snapshot]) -> list[Snapshot]:
    return sorted(found, key=lambda one: (one.timestamp, one.id), reverse=True)


def _unreadable(exc: OSError) -> WorkspaceFailed:
    return WorkspaceFailed(f"The snapshots cannot be read: {exc.strerror}.")
