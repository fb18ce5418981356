"""Two texts side by side, as a person reads what changed: rows, with what is alike left out."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile, zip_longest

from runners.workspace.writing.line_diff import diff_lines

AROUND = 3  # equal lines shown before and after what changed
LINE_MAX = 2000  # characters shown of a line


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a row: a line's number, and its text cut where it differs from the other's."""

    number: int
    before: str
    differs: str
    after: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    Attributes:
        kind: equal, changed, gone (left alone), come (right alone) or skipped.
        skipped: how many equal lines are not shown.
    """

    kind: str
    left: Side | None = None
    right: Side | None = None
    skipped: int = 0


def rows_of(old: str, new: str) -> Iterator[Row]:
    """Yield the rows of two texts; none where they are equal."""
    lines = old.split("\n")
    at = shift = 0
    hunks = diff_lines(old, new)
    for number, hunk in enumerate(hunks):
        start = hunk["startOld"] - 1
        yield from _alike(lines, at, start, shift, is_first=number == 0)
        yield from _changed(hunk["linesOld"], hunk["linesNew"], start, hunk["startNew"] - 1)
        at = start + hunk["lenOld"]
        shift = hunk["startNew"] - 1 + hunk["lenNew"] - at
    if hunks:
        yield from _alike(lines, at, len(lines), shift, is_last=True)


def _alike(
    lines: list[str],
    start: int,
    end: int,
    shift: int,
    *,
    is_first: bool = False,
    is_last: bool = False,
) -> Iterator[Row]:
    """Yield equal lines: those near what changed, and how many lie between."""
    head = start if is_first else min(end, start + AROUND)
    tail = end if is_last else max(head, end - AROUND)
    for number in range(start, head):
        yield _equal(lines[number], number, shift)
    if tail == head + 1:  # a row either way
        tail = head
    elif tail > head:
        yield Row("skipped", skipped=tail - head)
    for number in range(tail, end):
        yield _equal(lines[number], number, shift)


def _equal(line: str, number: int, shift: int) -> Row:
    text = seen(line)
    return Row("equal", Side(number + 1, text, "", ""), Side(number + shift + 1, text, "", ""))


def _changed(gone: list[str], come: list[str], i: int, j: int) -> Iterator[Row]:
    for number, (old, new) in enumerate(zip_longest(gone, come)):
        if old is None:
            yield Row("come", None, Side(j + number + 1, seen(new), "", ""))
        elif new is None:
            yield Row("gone", Side(i + number + 1, seen(old), "", ""), None)
        else:
            left, right = _cut(seen(old), seen(new))
            yield Row("changed", Side(i + number + 1, *left), Side(j + number + 1, *right))


def _cut(old: str, new: str) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    """Return both lines as what is alike before, what differs, what is alike after."""
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    return _thirds(old, start, end), _thirds(new, start, end)


def _shared(old: str, new: str) -> int:
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _thirds(line: str, start: int, end: int) -> tuple[str, str, str]:
    return line[:start], line[start : len(line) - end], line[len(line) - end :]


def seen(line: str) -> str:
    """Return a line for reading: what would be invisible or turn the direction of the text stands
    as its escape.
    """
    cut = line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}…"
    return "".join(_seen(one) for one in cut)


def _seen(one: str) -> str:
    if one == "\r":
        return "␍"
    if one == "\t" or unicodedata.category(one) not in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp"):
        return one
    return f"\\u{ord(one):04x}"
