"""Which writes were previewed: who, which file, how, which content, over which content.

A preview is an empty file whose name says all that and whose age says until when; so it outlives a
process, and several share it.
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
    """What somebody wants to write.

    Attributes:
        path: relative to the root, in its one form.
        mode: overwrite or append.
        data: the whole content, or what is appended.
    """

    principal_id: str
    path: str
    mode: str
    data: bytes

    def digest(self) -> str:
        """Return what tells this write from every other."""
        told = [self.principal_id, self.path, self.mode, hashlib.sha256(self.data).hexdigest()]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def record_preview(state: Path, write: WriteRequest, base: bytes | None) -> None:
    """Remember that a write was shown, over this content (None: no file), for 15 minutes.

    Raises:
        OSError: The state folder cannot be written.
    """
    folder = state / "previews"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / _name(write, base)
    path.touch(mode=0o600)
    os.utime(path)


def require_preview(state: Path, write: WriteRequest, base: bytes | None) -> None:
    """Refuse a write that nobody was shown.

    Raises:
        PolicyViolation: There was no such preview, or it is too old.
        WriteConflict: There was one, and the file has changed since.
    """
    folder, about = state / "previews", {"path": write.path}
    delete_expired_previews(state)
    if (folder / _name(write, base)).exists():
        return
    if any(folder.glob(f"{_first(write)}-*")):
        raise WriteConflict("The file has changed since the write was previewed.", details=about)
    raise PolicyViolation("The write was not previewed with this very content.", details=about)


def delete_expired_previews(state: Path) -> None:
    """Let previews end whose time is over."""
    for path in files_older_than(state / "previews", LIFETIME_S):
        path.unlink(missing_ok=True)


def _first(write: WriteRequest) -> str:
    return write.digest()[:40]


def _name(write: WriteRequest, base: bytes | None) -> str:
    over = "absent" if base is None else hashlib.sha256(base).hexdigest()[:24]
    return f"{_first(write)}-{over}"
