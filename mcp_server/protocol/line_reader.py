"""Lines from a descriptor, none of them longer in memory than the gate takes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

CHUNK_BYTES = 64 * 1024
EDGE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class OversizedLine:
    """A line beyond the limit: only its edges were kept, to find the request's id in."""

    head: bytes
    tail: bytes


class _Line:
    """A line as it grows."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._data = bytearray()
        self._head = b""

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        self._data += piece
        if self._size > self._limit:
            self._head = self._head or bytes(self._data[:EDGE_BYTES])
            del self._data[:-EDGE_BYTES]

    def take(self) -> bytes | OversizedLine | None:
        """Return the line, or None for a blank one."""
        if self._size > self._limit:
            return OversizedLine(self._head, bytes(self._data))
        return bytes(self._data) if self._data.strip() else None


def read_lines(fd: int, *, limit: int) -> Iterator[bytes | OversizedLine]:
    """Yield every line that is not blank, until the end; blocks on the descriptor."""
    line = _Line(limit)
    while chunk := os.read(fd, CHUNK_BYTES):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            line.add(piece)
            if (whole := line.take()) is not None:
                yield whole
            line = _Line(limit)
        line.add(rest)
    if (last := line.take()) is not None:
        yield last
