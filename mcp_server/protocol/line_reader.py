"""Read lines from a file descriptor, holding no more of a line in memory than its limit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

CHUNK_BYTES = 64 * 1024
EDGE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class OversizedLine:
    """The first and the last EDGE_BYTES of a line over the limit, to find its request id in."""

    head: bytes
    tail: bytes


class _Line:
    """The line that is being read."""

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

    def value(self) -> bytes | OversizedLine | None:
        """Return the line, or None for a blank one."""
        if self._size > self._limit:
            return OversizedLine(self._head, bytes(self._data))
        return bytes(self._data) if self._data.strip() else None


def read_lines(fd: int, *, limit: int) -> Iterator[bytes | OversizedLine]:
    """Yield every line that is not blank, until end of file; blocks on the descriptor.

    Args:
        fd: A readable descriptor.
        limit: The largest line, in bytes, that is yielded whole.
    """
    line = _Line(limit)
    while chunk := os.read(fd, CHUNK_BYTES):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            line.add(piece)
            if (complete := line.value()) is not None:
                yield complete
            line = _Line(limit)
        line.add(rest)
    if (last := line.value()) is not None:
        yield last
