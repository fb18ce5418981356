"""Read open files completely, or not at all if they exceed a limit."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

_HEAD = 65_536  # bytes
READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


def read_descriptor(fd: int, size: int, limit: int) -> bytes | None:
    """Return the content of an open file of about `size` bytes, None if it exceeds `limit`."""
    data = os.read(fd, size + 1)
    if len(data) == size:
        return data
    chunks, length = [data], len(data)
    while length <= limit and (chunk := os.read(fd, 1 << 20)):
        chunks.append(chunk)
        length += len(chunk)
    return b"".join(chunks) if length <= limit else None


def read_files_in_folder(
    folder: int, paths: Iterable[str], limit: int
) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of regular files in one open folder.

    Files that cannot be read or exceed `limit` bytes are skipped, as are large files with a NUL
    byte near their start: these are images or sounds.
    """
    flags = READ_FLAGS | os.O_NOFOLLOW | os.O_CLOEXEC
    for path in paths:
        try:
            fd = os.open(path[path.rfind("/") + 1 :], flags, dir_fd=folder)
        except OSError:
            continue
        try:
            info = os.fstat(fd)
            size = info.st_size
            if size > limit or not stat.S_ISREG(info.st_mode):
                continue
            data = (read_descriptor if size <= _HEAD else _read_text)(fd, size, limit)
        except OSError:
            continue
        finally:
            os.close(fd)
        if data is not None:
            yield path, data


def _read_text(fd: int, size: int, limit: int) -> bytes | None:
    head = os.read(fd, _HEAD)
    rest = None if b"\0" in head else read_descriptor(fd, size - len(head), limit - len(head))
    return None if rest is None else head + rest
