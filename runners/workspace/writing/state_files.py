"""Files of a workspace's state folder: atomic writes, and deletion by age."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

DRAFT_PREFIX = ".draft-"  # of the temporary name of a file until it is complete


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically and durably; create its folder, replace an existing file.

    Raises:
        OSError: The disk is full or failed; an existing file is unchanged.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{DRAFT_PREFIX}{secrets.token_hex(8)}")
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
    """Make the entries of a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def mark_if_due(marker: Path, every_s: float) -> bool:
    """Return whether a periodic job is due; if so, record in the marker file that it runs now.

    Raises:
        OSError: The marker's folder cannot be written, or does not exist.
    """
    with contextlib.suppress(FileNotFoundError):
        if 0 <= time.time() - marker.stat().st_mtime < every_s:
            return False
    marker.touch(mode=0o600)
    os.utime(marker)
    return True


def list_names(folder: Path) -> list[str]:
    """Return the names in a folder; empty if it does not exist."""
    try:
        return os.listdir(folder)  # noqa: PTH208  (only names; Path objects would be slower)
    except FileNotFoundError:
        return []


def files_older_than(folder: Path, seconds: float) -> Iterator[Path]:
    """Yield the files of a folder that were not modified for `seconds`."""
    limit = time.time() - seconds
    for name in list_names(folder):
        with contextlib.suppress(FileNotFoundError):
            if (folder / name).stat().st_mtime < limit:
                yield folder / name
