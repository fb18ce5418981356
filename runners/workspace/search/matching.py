"""Find the lines of one file that an expression matches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from runners.workspace.search.patterns import LinePattern

PREVIEW = 200  # characters
_BEFORE = 60  # bytes of a long line that are shown before the match
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # ripgrep would read such a file as what it says it is


class Match(NamedTuple):
    """A line that matches; `line` counts from 1."""

    path: str
    line: int
    preview: str


def matches_in(path: str, data: bytes, pattern: LinePattern, room: int) -> list[Match]:
    r"""Return at most `room` lines of a file that match.

    None where it is binary: it holds a NUL, or begins as UTF-16 does. A BOM and the "\r" at the end
    of a line are no part of it.
    """
    if b"\0" in data or data.startswith(_UTF_16):
        return []
    data = data.removeprefix(_BOM)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
    starts = _alone(data, pattern.compiled) if pattern.alone else _whole(data, pattern.compiled)
    found, line, counted = [], 1, 0
    for start in starts:
        line += data.count(b"\n", counted, start)
        counted = start
        found.append(Match(path, line, _preview(data, start)))
        if len(found) == room:
            break
    return found


def _whole(data: bytes, compiled: Any) -> Iterator[int]:
    """Yield where the first match of each line begins; no match can reach over a line break."""
    search, at = compiled.search, 0
    while at < len(data):
        match = search(data, at)
        # What follows the last line break is no line when it is empty.
        if match is None or (match.start() == len(data) and data[-1] == 10):
            return
        start = match.start()
        yield start
        end = data.find(b"\n", start)
        if end < 0:
            return
        at = end + 1


def _alone(data: bytes, compiled: Any) -> Iterator[int]:
    at = 0
    for line in data.removesuffix(b"\n").split(b"\n") if data else ():
        match = compiled.search(line)
        if match is not None:
            yield at + match.start()
        at += len(line) + 1


def _preview(data: bytes, start: int) -> str:
    """Return the line around a place: whole where it is short, else the part with the match."""
    begin = data.rfind(b"\n", 0, start) + 1
    end = data.find(b"\n", start)
    end = len(data) if end < 0 else end
    if end - begin <= 4 * PREVIEW:
        text = data[begin:end].decode(errors="replace")
        if len(text) <= PREVIEW:
            return text
    cut = begin if start - begin <= _BEFORE else start - _BEFORE
    while cut > begin and cut < end and data[cut] & 0xC0 == 0x80:
        cut += 1  # never in the midst of a character
    text = data[cut : min(end, cut + 4 * PREVIEW + 8)].decode(errors="replace")
    before = "…" if cut > begin else ""
    whole = cut + len(text.encode()) >= end
    room = PREVIEW - len(before)
    return before + (text if whole and len(text) <= room else f"{text[: room - 1]}…")
