"""Read open files whole, or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

_HEAD = 65_536  # bytes
READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


def read_descriptor(found: int, size: int, limit: int) -> bytes | None:
    """Return what an open file of about `size` bytes holds, None when it is more than `limit`."""
    data = os.read(found, size + 1)
    if len(data) == size:
        return data
    pieces, length = [data], len(data)
    while length <= limit and (piece := os.read(found, 1 << 20)):
        pieces.append(piece)
        length += len(piece)
    return b"".join(pieces) if length <= limit else None


def read_files_in_folder(
    folder: int, paths: Iterable[str], limit: int
) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of regular files in one open folder; leave out what cannot be read, and
    what begins with a NUL among its first bytes: pictures and sounds are not read whole.
    """
    flags = READ_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC
    for path in paths:
        try:
            found = os.open(path[path.rfind("/") + 1 :], flags, dir_fd=folder)
        except OSError:
            continue
        try:
            told = os.fstat(found)
            size = told.st_size
            if size > limit or not stat.S_ISREG(told.st_mode):
                continue
            data = (read_descriptor if size <= _HEAD else _read_text)(found, size, limit)
        except OSError:
            continue
        finally:
            os.close(found)
        if data is not None:
            yield path, data


def _read_text(found: int, size: int, limit: int) -> bytes | None:
    head = os.read(found, _HEAD)
    rest = None if b"\0" in head else read_descriptor(found, size - len(head), limit - len(head))
    return None if rest is None else head + rest
