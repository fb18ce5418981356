"""What changed between two texts, line by line, exactly reversible (S4 §0.4).

A line is an element of `text.split("\\n")`: "\\r" stays in it, and whether the text ends with a
line break is a last empty line or none. Lines that stand once in both texts are taken as the same
line (patience); between them, in what is left, lines in a row that stand there once together; what
is small enough then gets the shortest edit (Myers). The work is bounded by the size of the texts:
where it would not be, a part is told as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypedDict

from runners.workspace.writing.shortest_edit import common_runs

Gap = tuple[int, int, int, int]  # lines [i1, i2) of the old text and [j1, j2) of the new one
_SMALL = 48  # lines on both sides together that the shortest edit is looked for in at once
_LONGEST_ROW = 1024  # lines in a row that are looked at as one


class Hunk(TypedDict):
    """Lines that went and lines that came in their place; starts are 1-based.

    With lenOld 0 the new lines stand before line startOld of the old text; with lenNew 0 the old
    ones stood before line startNew of the new one.
    """

    startOld: int
    lenOld: int
    startNew: int
    lenNew: int
    linesOld: list[str]
    linesNew: list[str]


def diff_lines(old: str, new: str) -> list[Hunk]:
    """Return the hunks that turn one text into the other, in order; none where they are equal."""
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


def apply_diff(old: str, hunks: Sequence[Hunk]) -> str:
    """Return the new text.

    Raises:
        ValueError: The hunks were not made from this text.
    """
    return _patched(old, [(h["startOld"] - 1, h["linesOld"], h["linesNew"]) for h in hunks])


def undo_diff(new: str, hunks: Sequence[Hunk]) -> str:
    """Return the old text.

    Raises:
        ValueError: The hunks do not lead to this text.
    """
    return _patched(new, [(h["startNew"] - 1, h["linesNew"], h["linesOld"]) for h in hunks])


def _patched(text: str, changes: list[tuple[int, list[str], list[str]]]) -> str:
    lines = text.split("\n")
    made: list[str] = []
    at = 0
    for start, gone, come in changes:
        if start < at or lines[start : start + len(gone)] != gone:
            raise ValueError(f"the text has other lines at {start + 1} than the diff says")
        made += lines[at:start]
        made += come
        at = start + len(gone)
    return "\n".join(made + lines[at:])


def changed_parts(a: Sequence[str], b: Sequence[str]) -> list[Gap]:
    """Return what differs, in order, no two parts touching."""
    effort = 4_000_000 + 40 * (len(a) + len(b))  # steps; then what is left counts as replaced
    todo: list[Gap] = [(0, len(a), 0, len(b))]
    found: list[Gap] = []
    while todo:
        i1, i2, j1, j2 = gap = _trimmed(a, b, todo.pop())
        n, m = i2 - i1, j2 - j1
        if n == 0 or m == 0 or n == m == 1 or effort <= 0:
            found += [gap] if n or m else []
            continue
        here, there = a[i1:i2], b[j1:j2]
        gaps = _between_anchors(here, there) if n + m > _SMALL else None
        if gaps is not None:
            effort -= 8 * (n + m)
            todo += [_moved(gap, i1, j1) for gap in gaps]
            continue
        runs, steps = common_runs(here, there)
        effort -= steps
        found += [_moved(gap, i1, j1) for gap in _between(runs, n, m)]
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


def _between(runs: Iterable[tuple[int, int, int]], n: int, m: int) -> Iterator[Gap]:
    """Yield what lies between runs (i, j, length) of equal lines."""
    i = j = 0
    for x, y, length in (*runs, (n, m, 0)):
        if x > i or y > j:
            yield i, x, j, y
        i, j = x + length, y + length


def _between_anchors(a: Sequence[str], b: Sequence[str]) -> list[Gap] | None:
    """Return the gaps between what is surely the same, or None where nothing is.

    That is what stands once on both sides: a line, else two in a row, four, and so on. A row is
    numbered by the two shorter ones it is made of, so each doubling is one pass.
    """
    x: Sequence[Hashable] = a
    y: Sequence[Hashable] = b
    length = 1
    while length <= _LONGEST_ROW:
        froms, places = _once_in_both(x, y)
        if froms:
            return list(_around(*_rising(froms, places), a, b))
        if set(x).isdisjoint(y):
            return None
        numbers: dict[Hashable, int] = {}
        x, y = (_numbered(side, length, numbers) for side in (x, y))
        length *= 2
    return None


def _numbered(
    rows: Sequence[Hashable], length: int, numbers: dict[Hashable, int]
) -> list[Hashable]:
    return [numbers.setdefault(row, len(numbers)) for row in zip(rows, rows[length:], strict=False)]


def _once_in_both(x: Sequence[Hashable], y: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Return where that stands which stands once in each: in the first, rising, and the second."""
    once = {row for row, often in Counter(y).items() if often == 1}
    rows = [row for row, often in Counter(x).items() if often == 1 and row in once]
    in_x = dict(zip(x, range(len(x)), strict=True))
    in_y = dict(zip(y, range(len(y)), strict=True))
    return [in_x[row] for row in rows], [in_y[row] for row in rows]


def _rising(froms: list[int], places: list[int]) -> tuple[list[int], list[int]]:
    """Return the longest part of the pairs in which both rise (patience sorting)."""
    if places == sorted(places):
        return froms, places
    ends: list[int] = []  # the smallest place that a rising part of each length ends with
    last: list[int] = []  # and the pair that it ends with
    before: list[int] = []
    for number, j in enumerate(places):
        length = bisect_left(ends, j)
        ends[length : length + 1] = [j]
        last[length : length + 1] = [number]
        before.append(last[length - 1] if length else -1)
    kept, number = [], last[-1]
    while number >= 0:
        kept.append(number)
        number = before[number]
    kept.reverse()
    return [froms[number] for number in kept], [places[number] for number in kept]


def _around(
    froms: list[int], places: list[int], a: Sequence[str], b: Sequence[str]
) -> Iterator[Gap]:
    """Yield the gaps between single equal lines, but those that are equal themselves."""
    i = j = 0
    for x, y in zip([*froms, len(a)], [*places, len(b)], strict=True):
        if (x != i or y != j) and (x - i != y - j or a[i:x] != b[j:y]):
            yield i, x, j, y
        i, j = x + 1, y + 1
