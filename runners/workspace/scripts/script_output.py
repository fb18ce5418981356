"""A script's output: its start and its end, as lines without terminal escape sequences."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

HEAD_BYTES = 64 * 1024
TAIL_BYTES = 192 * 1024
HEAD_LINES, TAIL_LINES = 1000, 3000
LINE_CHARS = 2000
# Control sequences, operating system commands (titles, links), and other escapes.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


class ScriptOutput:
    """Collects output; keeps the first 64 KiB and the last 192 KiB."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._dropped_bytes = self._dropped_lines = 0

    def feed(self, data: bytes) -> None:
        """Append output."""
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if not rest:
            return
        self._tail.append(rest)
        self._tail_bytes += len(rest)
        while self._tail_bytes - len(self._tail[0]) >= TAIL_BYTES:
            dropped = self._tail.popleft()
            self._tail_bytes -= len(dropped)
            self._dropped_bytes += len(dropped)
            self._dropped_lines += dropped.count(b"\n")

    def add_line(self, line: str) -> None:
        """Append a line that the script did not print, on a line of its own."""
        last = self._tail[-1][-1:] if self._tail else bytes(self._head[-1:])
        self.feed((b"" if last in {b"", b"\n"} else b"\n") + line.encode() + b"\n")

    def lines(self, mask: Callable[[str], str] = str) -> list[str]:
        """Return the lines so far; a line in the middle notes how much was left out.

        Args:
            mask: removes secrets from a line.
        """
        head, tail = self._ends()
        cut = [*head[HEAD_LINES:], *tail[:-TAIL_LINES]]
        count = len(cut) + self._dropped_lines
        size = sum(len(line) + 1 for line in cut) + self._dropped_bytes
        note = [f"[… {count} lines, {size} bytes left out …]"] if size else []
        rendered = [*_rendered(head[:HEAD_LINES]), *note, *_rendered(tail[-TAIL_LINES:])]
        return [_truncated(mask(line)) for line in rendered]

    def _ends(self) -> tuple[list[bytes], list[bytes]]:
        """Return the lines of the start and those of the end."""
        head, tail = bytes(self._head), b"".join(self._tail)
        if self._dropped_bytes:
            return _split(head), _split(tail)
        lines = _split(head + tail)
        return lines[:HEAD_LINES], lines[HEAD_LINES:]


def strip_escapes(text: str) -> str:
    """Return a text without terminal escape sequences."""
    return _ESCAPES.sub("", text)


def _split(data: bytes) -> list[bytes]:
    return data.removesuffix(b"\n").split(b"\n") if data else []


def _rendered(lines: list[bytes]) -> list[str]:
    """Return lines as a terminal finally shows them: after a `\\r` the line is overwritten."""
    rendered = []
    for line in lines:
        text = strip_escapes(line.decode("utf-8", "replace"))
        last = next((part for part in reversed(text.split("\r")) if part), "")
        rendered.append(_CONTROLS.sub("", last))
    return rendered


def _truncated(line: str) -> str:
    if len(line) <= LINE_CHARS:
        return line
    return f"{line[:LINE_CHARS]}[… {len(line) - LINE_CHARS} characters left out …]"
