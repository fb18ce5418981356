"""Lines read from a file descriptor are complete, in order, and limited in memory."""

from __future__ import annotations

import os
import threading
import tracemalloc
from collections.abc import Sequence

from mcp_server.protocol.line_reader import EDGE_BYTES, OversizedLine, read_lines


def lines_of(*pieces: bytes, limit: int = 100) -> Sequence[bytes | OversizedLine]:
    """Write the pieces one by one to a pipe and return the lines read from it."""
    read_fd, write_fd = os.pipe()

    def write() -> None:
        for piece in pieces:
            os.write(write_fd, piece)
        os.close(write_fd)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return list(read_lines(read_fd, limit=limit))
    finally:
        writer.join()
        os.close(read_fd)


def test_lines_are_complete_however_they_were_written() -> None:
    assert lines_of(b"on", b"e\ntw", b"o\nthree\n") == [b"one", b"two", b"three"]


def test_the_last_line_needs_no_newline() -> None:
    assert lines_of(b"one\ntwo") == [b"one", b"two"]


def test_blank_lines_are_skipped() -> None:
    assert lines_of(b"\n\r\n  \none\n\n") == [b"one"]


def test_a_line_of_exactly_the_limit_is_accepted() -> None:
    assert lines_of(b"x" * 100 + b"\n") == [b"x" * 100]


def test_only_the_edges_of_an_oversized_line_are_kept_and_the_next_line_is_complete() -> None:
    long, after = lines_of(b"head" + b"x" * 5000 + b"tail\n", b"next\n")
    assert isinstance(long, OversizedLine)
    assert long.head.startswith(b"headx")
    assert long.tail.endswith(b"xtail")
    assert (len(long.head), len(long.tail)) == (EDGE_BYTES, EDGE_BYTES)
    assert after == b"next"


def test_an_oversized_line_without_a_newline_is_reported() -> None:
    (long,) = lines_of(b"x" * 5000)
    assert isinstance(long, OversizedLine)


def test_an_endless_line_does_not_fill_the_memory() -> None:
    tracemalloc.start()
    try:
        lines_of(*[b"x" * 65_536] * 400, limit=1024 * 1024)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 1024 * 1024
