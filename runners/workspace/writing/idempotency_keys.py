"""Idempotency keys of writes: what was done under one, for 24 hours (S4 §0.4)."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path

from runners.workspace.errors import WriteConflict
from runners.workspace.writing.previews import WriteRequest
from runners.workspace.writing.state_files import files_older_than, write_atomically

LIFETIME_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class KeyedWrite:
    """A write under a key: the caller's own, of this one file."""

    state: Path
    write: WriteRequest
    key: str

    @property
    def file(self) -> Path:
        """Where it is kept what was done under it."""
        told = json.dumps([self.write.principal_id, self.write.path, self.key])
        return self.state / "keys" / f"{hashlib.sha256(told.encode()).hexdigest()[:40]}.json"

    def find_done(self) -> str | None:
        """Return the snapshot's id of the same write done before, or None where none was.

        Raises:
            WriteConflict: The key was used for another content of this file.
        """
        try:
            if time.time() - self.file.stat().st_mtime > LIFETIME_S:
                return None
            kept = json.loads(self.file.read_bytes())
            digest, snapshot_id = kept["write"], str(kept["snapshotId"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        if digest != self.write.digest():
            raise WriteConflict(
                "The idempotency key was used for another content.",
                details={"path": self.write.path},
            )
        return snapshot_id

    def record(self, snapshot_id: str) -> None:
        """Remember that the write is done.

        Raises:
            OSError: The disk is full or refuses.
        """
        told = {"write": self.write.digest(), "snapshotId": snapshot_id}
        write_atomically(self.file, json.dumps(told).encode())


def delete_expired_keys(state: Path) -> None:
    """Let keys end whose time is over."""
    for path in files_older_than(state / "keys", LIFETIME_S):
        path.unlink(missing_ok=True)
