"""A side-by-side diff of two texts as table rows; long equal parts are left out."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile, zip_longest

from runners.workspace.writing.line_diff import diff_lines

CONTEXT_LINES = 3  # equal lines shown before and after a change
LINE_MAX = 2000  # characters shown of a line


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a row: the line number and the text, split around the part that differs."""

    number: int
    before: str
    differs: str
    after: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    Attributes:
        kind: `equal`, `changed`, `removed` (left side only), `added` (right side only) or
            `skipped`.
        skipped: The number of equal lines left out.
    """

    kind: str
    left: Side | None = None
    right: Side | None = None
    skipped: int = 0


def rows_of(old: str, new: str) -> Iterator[Row]:
    """Yield the rows of the diff; none for equal texts."""
    lines = old.split("\n")
    position = shift = 0
    hunks = diff_lines(old, new)
    for number, hunk in enumerate(hunks):
        start = hunk["startOld"] - 1
        yield from _equal_rows(lines, position, start, shift, is_first=number == 0)
        yield from _changed_rows(hunk["linesOld"], hunk["linesNew"], start, hunk["startNew"] - 1)
        position = start + hunk["lenOld"]
        shift = hunk["startNew"] - 1 + hunk["lenNew"] - position
    if hunks:
        yield from _equal_rows(lines, position, len(lines), shift, is_last=True)


def _equal_rows(
    lines: list[str],
    start: int,
    end: int,
    shift: int,
    *,
    is_first: bool = False,
    is_last: bool = False,
) -> Iterator[Row]:
    """Yield the equal lines near the changes, and a row that counts the others."""
    head = start if is_first else min(end, start + CONTEXT_LINES)
    tail = end if is_last else max(head, end - CONTEXT_LINES)
    for number in range(start, head):
        yield _equal(lines[number], number, shift)
    if tail == head + 1:  # the line takes no more space than the row that counts it
        tail = head
    elif tail > head:
        yield Row("skipped", skipped=tail - head)
    for number in range(tail, end):
        yield _equal(lines[number], number, shift)


def _equal(line: str, number: int, shift: int) -> Row:
    text = visible(line)
    return Row("equal", Side(number + 1, text, "", ""), Side(number + shift + 1, text, "", ""))


def _changed_rows(removed: list[str], added: list[str], i: int, j: int) -> Iterator[Row]:
    for number, (old, new) in enumerate(zip_longest(removed, added)):
        if old is None:
            yield Row("added", None, Side(j + number + 1, visible(new), "", ""))
        elif new is None:
            yield Row("removed", Side(i + number + 1, visible(old), "", ""), None)
        else:
            left, right = _split_at_difference(visible(old), visible(new))
            yield Row("changed", Side(i + number + 1, *left), Side(j + number + 1, *right))


def _split_at_difference(old: str, new: str) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    """Return both lines in three parts: the common start, the difference, the common end."""
    start = _common_prefix(old, new)
    end = _common_prefix(old[start:][::-1], new[start:][::-1])
    return _thirds(old, start, end), _thirds(new, start, end)


def _common_prefix(old: str, new: str) -> int:
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _thirds(line: str, start: int, end: int) -> tuple[str, str, str]:
    return line[:start], line[start : len(line) - end], line[len(line) - end :]


def visible(line: str) -> str:
    """Return a line for display: cut to LINE_MAX, with invisible characters escaped."""
    cut = line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}…"
    return "".join(_visible_character(one) for one in cut)


def _visible_character(one: str) -> str:
    if one == "\r":
        return "␍"
    if one == "\t" or unicodedata.category(one) not in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp"):
        return one
    return f"\\u{ord(one):04x}"
