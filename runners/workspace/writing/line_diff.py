"""A line diff between two texts that can be applied and undone exactly (S4 §0.4).

A line is an element of `text.split("\\n")`: a "\\r" is part of it, and a line break at the end of
the text shows as a last empty line. Lines that are unique in both texts are matched first (patience
diff); in the gaps between them, sequences of lines that are unique; and small gaps are compared by
difflib, which takes quadratic time and more. The work is bounded by the size of the texts: a gap
that would exceed the bound is reported as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypedDict

Gap = tuple[int, int, int, int]  # lines [i1, i2) of the old text and [j1, j2) of the new one
_SMALL_LINES = 48  # of both sides together, in which difflib is fast whatever they are
_MAX_ROW_LINES = 1024  # longest sequence of lines that is matched as one


class Hunk(TypedDict):
    """Removed lines and the lines that replace them; starts are 1-based.

    With lenOld 0 the new lines are inserted before line startOld of the old text; with lenNew 0 the
    old lines were before line startNew of the new text.
    """

    startOld: int
    lenOld: int
    startNew: int
    lenNew: int
    linesOld: list[str]
    linesNew: list[str]


def diff_lines(old: str, new: str) -> list[Hunk]:
    """Return the hunks that turn the old text into the new, in order; none if they are equal."""
    if old == new:
        return []
    a, b = old.split("\n"), new.split("\n")
    return [
        Hunk(
            startOld=i1 + 1,
            lenOld=i2 - i1,
            startNew=j1 + 1,
            lenNew=j2 - j1,
            linesOld=a[i1:i2],
            linesNew=b[j1:j2],
        )
        for i1, i2, j1, j2 in changed_parts(a, b)
    ]


def changed_parts(a: Sequence[str], b: Sequence[str]) -> list[Gap]:
    """Return the parts that differ, in order; no two parts are adjacent."""
    effort = 4_000_000 + 40 * (len(a) + len(b))  # steps; afterwards gaps are reported as replaced
    pending: list[Gap] = [(0, len(a), 0, len(b))]
    found: list[Gap] = []
    while pending:
        i1, i2, j1, j2 = gap = _trimmed(a, b, pending.pop())
        n, m = i2 - i1, j2 - j1
        if n == 0 or m == 0 or n == m == 1 or effort <= 0:
            found += [gap] if n or m else []
            continue
        here, there = a[i1:i2], b[j1:j2]
        gaps = _gaps_between_anchors(here, there) if n + m > _SMALL_LINES else None
        if gaps is not None:
            effort -= 8 * (n + m)
            pending += [_moved(gap, i1, j1) for gap in gaps]
        elif n + m > _SMALL_LINES:
            found.append(gap)
        else:
            effort -= 4 * n * m
            codes = SequenceMatcher(None, here, there, autojunk=False).get_opcodes()
            found += [_moved(code[1:], i1, j1) for code in codes if code[0] != "equal"]
    return _joined(sorted(found))


def _moved(gap: Gap, i: int, j: int) -> Gap:
    return gap[0] + i, gap[1] + i, gap[2] + j, gap[3] + j


def _trimmed(a: Sequence[str], b: Sequence[str], gap: Gap) -> Gap:
    i1, i2, j1, j2 = gap
    while i1 < i2 and j1 < j2 and a[i1] == b[j1]:
        i1 += 1
        j1 += 1
    while i1 < i2 and j1 < j2 and a[i2 - 1] == b[j2 - 1]:
        i2 -= 1
        j2 -= 1
    return i1, i2, j1, j2


def _joined(parts: list[Gap]) -> list[Gap]:
    joined: list[Gap] = []
    for part in parts:
        if joined and joined[-1][1] == part[0] and joined[-1][3] == part[2]:
            joined[-1] = (joined[-1][0], part[1], joined[-1][2], part[3])
        else:
            joined.append(part)
    return joined


def _gaps_between_anchors(a: Sequence[str], b: Sequence[str]) -> list[Gap] | None:
    """Return the gaps between anchors, None if there are no anchors.

    Anchors are rows that are unique on both sides: single lines, else sequences of two lines, four,
    and so on. A row gets a number from the two rows of half its length, so each doubling is one
    pass.
    """
    x: Sequence[Hashable] = a
    y: Sequence[Hashable] = b
    length = 1
    while length <= _MAX_ROW_LINES:
        old_positions, new_positions = _once_in_both(x, y)
        if old_positions:
            return list(_gaps_around(*_longest_rising(old_positions, new_positions), a, b))
        if set(x).isdisjoint(y):
            return None
        numbers: dict[Hashable, int] = {}
        x, y = (_number_rows(side, length, numbers) for side in (x, y))
        length *= 2
    return None


def _number_rows(
    rows: Sequence[Hashable], length: int, numbers: dict[Hashable, int]
) -> list[Hashable]:
    return [numbers.setdefault(row, len(numbers)) for row in zip(rows, rows[length:], strict=False)]


def _once_in_both(x: Sequence[Hashable], y: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Return the positions in x (rising) and in y of the rows that are unique in both."""
    once = {row for row, often in Counter(y).items() if often == 1}
    rows = [row for row, often in Counter(x).items() if often == 1 and row in once]
    in_x = dict(zip(x, range(len(x)), strict=True))
    in_y = dict(zip(y, range(len(y)), strict=True))
    return [in_x[row] for row in rows], [in_y[row] for row in rows]


def _longest_rising(
    old_positions: list[int], new_positions: list[int]
) -> tuple[list[int], list[int]]:
    """Return the longest subsequence of the pairs in which both rise (patience sorting)."""
    if new_positions == sorted(new_positions):
        return old_positions, new_positions
    ends: list[int] = []  # smallest last position of a rising subsequence of each length
    last: list[int] = []  # and the pair that it ends with
    before: list[int] = []
    for number, j in enumerate(new_positions):
        length = bisect_left(ends, j)
        ends[length : length + 1] = [j]
        last[length : length + 1] = [number]
        before.append(last[length - 1] if length else -1)
    chosen, number = [], last[-1]
    while number >= 0:
        chosen.append(number)
        number = before[number]
    chosen.reverse()
    return [old_positions[number] for number in chosen], [
        new_positions[number] for number in chosen
    ]


def _gaps_around(
    old_positions: list[int], new_positions: list[int], a: Sequence[str], b: Sequence[str]
) -> Iterator[Gap]:
    """Yield the gaps between matched lines, except gaps that are equal on both sides."""
    i = j = 0
    for x, y in zip([*old_positions, len(a)], [*new_positions, len(b)], strict=True):
        if (x != i or y != j) and (x - i != y - j or a[i:x] != b[j:y]):
            yield i, x, j, y
        i, j = x + 1, y + 1
