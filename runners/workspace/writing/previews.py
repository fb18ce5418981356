"""Record which writes were previewed: caller, file, mode, new content, and content before.

A preview is an empty file: its name is a digest of all that, its modification time limits its
validity. So it survives a restart and is shared by processes.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from runners.workspace.errors import PolicyViolation, WriteConflict
from runners.workspace.writing.state_files import files_older_than

LIFETIME_S = 15 * 60


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A requested write.

    Attributes:
        path: relative to the root, normalized.
        mode: overwrite or append.
        data: the whole content, or the part to append.
    """

    principal_id: str
    path: str
    mode: str
    data: bytes

    def digest(self) -> str:
        """Return a digest of caller, path, mode and content."""
        parts = [self.principal_id, self.path, self.mode, hashlib.sha256(self.data).hexdigest()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def record_preview(state: Path, write: WriteRequest, base: bytes | None) -> None:
    """Record for 15 minutes that a write was previewed.

    Args:
        base: the file's content at the time, None if it did not exist.

    Raises:
        OSError: The state folder cannot be written.
    """
    folder = state / "previews"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / _name(write, base)
    path.touch(mode=0o600)
    os.utime(path)


def require_preview(state: Path, write: WriteRequest, base: bytes | None) -> None:
    """Raise unless the write was previewed over this content.

    Raises:
        PolicyViolation: There is no such preview, or it has expired.
        WriteConflict: The file has changed since the preview.
    """
    folder, details = state / "previews", {"path": write.path}
    delete_expired_previews(state)
    if (folder / _name(write, base)).exists():
        return
    if any(folder.glob(f"{_digest_prefix(write)}-*")):
        raise WriteConflict("The file has changed since the write was previewed.", details=details)
    raise PolicyViolation("The write was not previewed with this content.", details=details)


def delete_expired_previews(state: Path) -> None:
    """Delete previews older than 15 minutes."""
    for path in files_older_than(state / "previews", LIFETIME_S):
        path.unlink(missing_ok=True)


def _digest_prefix(write: WriteRequest) -> str:
    return write.digest()[:40]


def _name(write: WriteRequest, base: bytes | None) -> str:
    over = "absent" if base is None else hashlib.sha256(base).hexdigest()[:24]
    return f"{_digest_prefix(write)}-{over}"
