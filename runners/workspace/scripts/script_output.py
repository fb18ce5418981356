"""What a script printed: its beginning and its end, as lines without a terminal's colours."""

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
    """Bytes as they come; of a flood the first 64 KiB and the last 192 KiB are kept."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._bytes_left_out = self._lines_left_out = 0

    def feed(self, data: bytes) -> None:
        """Take what was printed next."""
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if not rest:
            return
        self._tail.append(rest)
        self._tail_bytes += len(rest)
        while self._tail_bytes - len(self._tail[0]) >= TAIL_BYTES:
            gone = self._tail.popleft()
            self._tail_bytes -= len(gone)
            self._bytes_left_out += len(gone)
            self._lines_left_out += gone.count(b"\n")

    def add_line(self, line: str) -> None:
        """Add a line of our own, on a line by itself."""
        last = self._tail[-1][-1:] if self._tail else bytes(self._head[-1:])
        self.feed((b"" if last in {b"", b"\n"} else b"\n") + line.encode() + b"\n")

    def lines(self, mask: Callable[[str], str] = str) -> list[str]:
        """Return what was printed so far, line by line, and where something is left out, how much;
        `mask` takes secrets out of a line.
        """
        head, tail = self._ends()
        cut = [*head[HEAD_LINES:], *tail[:-TAIL_LINES]]
        count = len(cut) + self._lines_left_out
        size = sum(len(line) + 1 for line in cut) + self._bytes_left_out
        note = [f"[… {count} lines, {size} bytes left out …]"] if size else []
        shown = [*_shown(head[:HEAD_LINES]), *note, *_shown(tail[-TAIL_LINES:])]
        return [_shortened(mask(line)) for line in shown]

    def _ends(self) -> tuple[list[bytes], list[bytes]]:
        """Return the lines of the beginning and those of the end."""
        head, tail = bytes(self._head), b"".join(self._tail)
        if self._bytes_left_out:
            return _split(head), _split(tail)
        lines = _split(head + tail)
        return lines[:HEAD_LINES], lines[HEAD_LINES:]


def plain(text: str) -> str:
    """Return a text without a terminal's escapes."""
    return _ESCAPES.sub("", text)


def _split(data: bytes) -> list[bytes]:
    return data.removesuffix(b"\n").split(b"\n") if data else []


def _shown(lines: list[bytes]) -> list[str]:
    """Return lines as a terminal would show them in the end: a progress bar overwrites itself."""
    shown = []
    for line in lines:
        text = plain(line.decode("utf-8", "replace"))
        last = next((part for part in reversed(text.split("\r")) if part), "")
        shown.append(_CONTROLS.sub("", last))
    return shown


def _shortened(line: str) -> str:
    if len(line) <= LINE_CHARS:
        return line
    return f"{line[:LINE_CHARS]}[… {len(line) - LINE_CHARS} characters left out …]"
