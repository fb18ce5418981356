"""Small files of our own beside a workspace, that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

DRAFT = ".draft-"  # what a file is called until it is whole


def write_atomically(path: Path, data: bytes) -> None:
    """Put a file there durably, over what may be there; its folder is made.

    Raises:
        OSError: The disk is full or refuses; what was there before is there still.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{DRAFT}{secrets.token_hex(8)}")
    try:
        with draft.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def fsync_folder(folder: Path) -> None:
    """Have the names in a folder outlive a power failure."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def mark_if_due(marker: Path, every_s: float) -> bool:
    """Tell whether something was last due longer ago than this, and note that it is done now.

    Raises:
        OSError: The marker's folder cannot be written, or is not there.
    """
    with contextlib.suppress(FileNotFoundError):
        if 0 <= time.time() - marker.stat().st_mtime < every_s:
            return False
    marker.touch(mode=0o600)
    os.utime(marker)
    return True


def list_names(folder: Path) -> list[str]:
    """Return the names in a folder, none where there is no such folder."""
    try:
        return os.listdir(folder)  # noqa: PTH208  (names; a path object each would cost)
    except FileNotFoundError:
        return []


def files_older_than(folder: Path, seconds: float) -> Iterator[Path]:
    """Yield the files of a folder that nobody wrote for so long."""
    limit = time.time() - seconds
    for name in list_names(folder):
        with contextlib.suppress(FileNotFoundError):
            if (folder / name).stat().st_mtime < limit:
                yield folder / name
