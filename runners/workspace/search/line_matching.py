"""Find the lines of one file that an expression matches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runners.workspace.search.patterns import LinePattern

PREVIEW = 200  # characters
_BEFORE = 60  # bytes of a long line that are shown before the match
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # ripgrep would read such a file as what it says it is
_MARKS = (_BOM, *_UTF_16)
_BREAK = 10  # "\n"
_Place = tuple[int, int, int]  # where a line begins and ends, and where its first match begins
_NO_UTF_8 = re.compile("[\udc80-\udcff]")  # how Python holds a byte that is none


class Match(NamedTuple):
    """A line that matches; `line` counts from 1."""

    path: str
    line: int
    preview: str


class RequiredBytes:
    """Tells texts that hold no match by the bytes that each match needs, the rarest first."""

    def __init__(self, pattern: LinePattern) -> None:
        self._bytes = list(pattern.needed)

    def all_in(self, data: bytes) -> bool:
        """Tell whether all are in a text; False means that no line of it matches."""
        for at, one in enumerate(self._bytes):
            if one not in data:
                if at:  # what is not here may be missing in the next text too
                    self._bytes.insert(0, self._bytes.pop(at))
                return False
        return True


def matches_in(path: str, data: bytes, pattern: LinePattern, room: int) -> list[Match]:
    r"""Return at most `room` lines of a file that match.

    None where it is binary: it holds a NUL, or begins as UTF-16 does. A BOM and the "\r" at the end
    of a line are no part of it. A byte that is no UTF-8 is no character.
    """
    if b"\0" in data or data.startswith(_UTF_16):
        return []
    data = data.removeprefix(_BOM)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
    starts = _alone(data, pattern) if pattern.alone else _whole(data, pattern)
    return _told(path, data, starts, room)


def matches_at(
    path: str, data: bytes, pattern: LinePattern, lines: Sequence[int], room: int
) -> list[Match]:
    """Return what `matches_in` does where it is known which lines may match.

    Args:
        lines: where they begin, in order; at least one. If that cannot be, for the file was
            changed, all lines are tried.
    """
    if b"\0" in data or b"\r" in data or data.startswith(_MARKS) or lines[-1] >= len(data):
        return matches_in(path, data, pattern, room)
    if any(begin and data[begin - 1] != _BREAK for begin in lines):
        return matches_in(path, data, pattern, room)
    return _told(path, data, _among(data, pattern, lines), room)


def _told(path: str, data: bytes, places: Iterator[_Place], room: int) -> list[Match]:
    found, line, counted = [], 1, 0
    for place in places:
        line += data.count(b"\n", counted, place[0])
        counted = place[0]
        found.append(Match(path, line, _preview(data, *place)))
        if len(found) == room:
            break
    return found


def _whole(data: bytes, pattern: LinePattern) -> Iterator[_Place]:
    """Yield the first match of each line; no match can reach over a line break."""
    search, at = pattern.compiled.search, 0
    while at < len(data):
        match = search(data, at)
        # What follows the last line break is no line when it is empty.
        if match is None or (match.start() == len(data) and data[-1] == _BREAK):
            return
        start = match.start()
        begin, end = data.rfind(b"\n", 0, start) + 1, _end_of_line(data, start)
        in_line = _sound(data[begin:end], start - begin, pattern)
        if in_line is not None:
            yield begin, end, begin + in_line
        at = end + 1


def _alone(data: bytes, pattern: LinePattern) -> Iterator[_Place]:
    at = 0
    while at < len(data):
        yield from _among(data, pattern, [at])
        at = _end_of_line(data, at) + 1


def _among(data: bytes, pattern: LinePattern, lines: Sequence[int]) -> Iterator[_Place]:
    """Yield the first match of each of some lines, tried by itself."""
    search = pattern.compiled.search
    for begin in lines:
        end = _end_of_line(data, begin)
        line = data[begin:end]
        match = search(line)
        start = None if match is None else _sound(line, match.start(), pattern)
        if start is not None:
            yield begin, end, begin + start


def _sound(line: bytes, start: int, pattern: LinePattern) -> int | None:
    r"""Return where the first match of a line begins, which RE2 says is at `start`.

    RE2 takes bytes for characters that are none: surrogates, and long forms as "\xe0\x80\x80".
    """
    try:
        line.decode()
    except UnicodeDecodeError:
        pieces = _NO_UTF_8.split(line.decode(errors="surrogateescape"))
        match = pattern.compiled.search(b"\xff".join([piece.encode() for piece in pieces]))
        return None if match is None else int(match.start())
    return start


def _end_of_line(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _preview(data: bytes, begin: int, end: int, start: int) -> str:
    """Return the line around a place: whole where it is short, else the part with the match."""
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
