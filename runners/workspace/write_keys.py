"""Idempotency keys of writes: what was done under one, for 24 hours (S4 §0.4)."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

from runners.workspace.errors import WriteConflict
from runners.workspace.kept_files import keep_file, older_than
from runners.workspace.previews import Write

LIFE_S = 24 * 3600


def key_file(state: Path, write: Write, key: str) -> Path:
    """Return where it is kept what was done to the write's file under a key of its caller."""
    told = json.dumps([write.principal_id, write.path, key])
    return state / "keys" / f"{hashlib.sha256(told.encode()).hexdigest()[:40]}.json"


def done_under(path: Path, write: Write) -> str | None:
    """Return the id of the snapshot of the same write done before, or None where none was.

    Raises:
        WriteConflict: The key was used for another content of this file.
    """
    try:
        if time.time() - path.stat().st_mtime > LIFE_S:
            return None
        kept = json.loads(path.read_bytes())
        digest, snapshot_id = kept["write"], str(kept["snapshotId"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    if digest != write.digest():
        raise WriteConflict(
            "The idempotency key was used for another content.", details={"path": write.path}
        )
    return snapshot_id


def remember_done(path: Path, write: Write, snapshot_id: str) -> None:
    """Remember under which key a write was done.

    Raises:
        OSError: The disk is full or refuses.
    """
    keep_file(path, json.dumps({"write": write.digest(), "snapshotId": snapshot_id}).encode())


def forget_keys(state: Path) -> None:
    """Let keys end whose time is over."""
    for path in older_than(state / "keys", LIFE_S):
        path.unlink(missing_ok=True)
