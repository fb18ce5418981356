"""Idempotency keys of writes: a write's result is stored under its key for 24 hours (S4 §0.4)."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path

import orjson

from runners.workspace.errors import WriteConflict
from runners.workspace.writing.previews import WriteRequest
from runners.workspace.writing.state_files import files_older_than, write_atomically

LIFETIME_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class KeyedWrite:
    """A write with an idempotency key, which is scoped to the caller and the file."""

    state: Path
    write: WriteRequest
    key: str

    @property
    def file(self) -> Path:
        """The file that stores the result of the write."""
        scope = json.dumps([self.write.principal_id, self.write.path, self.key])
        return self.state / "keys" / f"{hashlib.sha256(scope.encode()).hexdigest()[:40]}.json"

    def find_done(self) -> str | None:
        """Return the snapshot's id of the same write if it was done before, else None.

        Raises:
            WriteConflict: The key was used for a different write of this file.
        """
        try:
            if time.time() - self.file.stat().st_mtime > LIFETIME_S:
                return None
            stored = orjson.loads(self.file.read_bytes())
            digest, snapshot_id = stored["write"], str(stored["snapshotId"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        if digest != self.write.digest():
            raise WriteConflict(
                "The idempotency key was used for different content; use a new key.",
                details={"path": self.write.path},
            )
        return snapshot_id

    def record(self, snapshot_id: str) -> None:
        """Store the result of the write.

        Raises:
            OSError: The disk is full or failed.
        """
        result = {"write": self.write.digest(), "snapshotId": snapshot_id}
        write_atomically(self.file, json.dumps(result).encode())


def delete_expired_keys(state: Path) -> None:
    """Delete keys older than 24 hours."""
    for path in files_older_than(state / "keys", LIFETIME_S):
        path.unlink(missing_ok=True)
