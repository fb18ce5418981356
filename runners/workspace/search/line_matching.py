"""Find the lines of one file that match an expression."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runners.workspace.search.patterns import LinePattern

PREVIEW_CHARS = 200  # characters
_CONTEXT_BYTES = 60  # of a long line, shown before the match
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # ripgrep decodes a file with such a BOM, RE2 does not
_BOMS = (_BOM, *_UTF_16)
_BREAK = 10  # "\n"
_Span = tuple[int, int, int]  # start and end of a line, and start of its first match
_NO_UTF_8 = re.compile("[\udc80-\udcff]")  # a byte that is not UTF-8, decoded as surrogateescape


class Match(NamedTuple):
    """A matching line; `line` is 1-based."""

    path: str
    line: int
    preview: str


class RequiredBytes:
    """A quick test that rules out files without the bytes that every match contains."""

    def __init__(self, pattern: LinePattern) -> None:
        self._bytes = list(pattern.required_bytes)

    def all_in(self, data: bytes) -> bool:
        """Return whether the data contains all of them; if not, no line matches."""
        for at, required in enumerate(self._bytes):
            if required not in data:
                if at:  # test first next time what was missing here
                    self._bytes.insert(0, self._bytes.pop(at))
                return False
        return True


def matches_in(path: str, data: bytes, pattern: LinePattern, max_matches: int) -> list[Match]:
    r"""Return at most `max_matches` matching lines of a file.

    A binary file (with a NUL byte, or a BOM of UTF-16) has none. A BOM and the "\r" at the end of a
    line are not part of it. A byte that is not UTF-8 matches no character.
    """
    if b"\0" in data or data.startswith(_UTF_16):
        return []
    data = data.removeprefix(_BOM)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
    starts = (
        _search_each_line(data, pattern) if pattern.line_by_line else _search_whole(data, pattern)
    )
    return _matches(path, data, starts, max_matches)


def matches_at(
    path: str, data: bytes, pattern: LinePattern, lines: Sequence[int], max_matches: int
) -> list[Match]:
    """Return what `matches_in` does, testing only the lines that may match.

    Args:
        lines: their start offsets, rising; at least one. If they do not fit, because the file has
            changed, all lines are tested.
    """
    if b"\0" in data or b"\r" in data or data.startswith(_BOMS) or lines[-1] >= len(data):
        return matches_in(path, data, pattern, max_matches)
    if any(begin and data[begin - 1] != _BREAK for begin in lines):
        return matches_in(path, data, pattern, max_matches)
    return _matches(path, data, _search_lines(data, pattern, lines), max_matches)


def _matches(path: str, data: bytes, spans: Iterator[_Span], max_matches: int) -> list[Match]:
    found, line, counted = [], 1, 0
    for span in spans:
        line += data.count(b"\n", counted, span[0])
        counted = span[0]
        found.append(Match(path, line, _preview(data, *span)))
        if len(found) == max_matches:
            break
    return found


def _search_whole(data: bytes, pattern: LinePattern) -> Iterator[_Span]:
    """Yield the first match of each line; no match can span a line break."""
    search, at = pattern.compiled.search, 0
    while at < len(data):
        match = search(data, at)
        # An empty rest after the last line break is not a line.
        if match is None or (match.start() == len(data) and data[-1] == _BREAK):
            return
        start = match.start()
        begin, end = data.rfind(b"\n", 0, start) + 1, _end_of_line(data, start)
        in_line = _first_match(data[begin:end], start - begin, pattern)
        if in_line is not None:
            yield begin, end, begin + in_line
        at = end + 1


def _search_each_line(data: bytes, pattern: LinePattern) -> Iterator[_Span]:
    at = 0
    while at < len(data):
        yield from _search_lines(data, pattern, [at])
        at = _end_of_line(data, at) + 1


def _search_lines(data: bytes, pattern: LinePattern, lines: Sequence[int]) -> Iterator[_Span]:
    """Yield the first match of each of the given lines, each searched separately."""
    search = pattern.compiled.search
    for begin in lines:
        end = _end_of_line(data, begin)
        line = data[begin:end]
        match = search(line)
        start = None if match is None else _first_match(line, match.start(), pattern)
        if start is not None:
            yield begin, end, begin + start


def _first_match(line: bytes, start: int, pattern: LinePattern) -> int | None:
    r"""Return the offset of the line's first match, which RE2 reports at `start`, or None.

    RE2 accepts some invalid UTF-8 (surrogates, overlong forms as "\xe0\x80\x80"). So a line with
    invalid bytes is searched again with these replaced by bytes that match nothing.
    """
    try:
        line.decode()
    except UnicodeDecodeError:
        parts = _NO_UTF_8.split(line.decode(errors="surrogateescape"))
        match = pattern.compiled.search(b"\xff".join([part.encode() for part in parts]))
        return None if match is None else int(match.start())
    return start


def _end_of_line(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _preview(data: bytes, begin: int, end: int, start: int) -> str:
    """Return the whole line if it is short, else the part with the match."""
    if end - begin <= 4 * PREVIEW_CHARS:
        text = data[begin:end].decode(errors="replace")
        if len(text) <= PREVIEW_CHARS:
            return text
    cut = begin if start - begin <= _CONTEXT_BYTES else start - _CONTEXT_BYTES
    while cut > begin and cut < end and data[cut] & 0xC0 == 0x80:
        cut += 1  # do not cut within a character
    text = data[cut : min(end, cut + 4 * PREVIEW_CHARS + 8)].decode(errors="replace")
    before = "…" if cut > begin else ""
    whole = cut + len(text.encode()) >= end
    room = PREVIEW_CHARS - len(before)
    return before + (text if whole and len(text) <= room else f"{text[: room - 1]}…")
