"""Which name is closest to the one that somebody wrote."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

LONGEST = 128  # characters of a name that are compared


def edits(one: str, other: str) -> int:
    """Return how many characters to insert, delete or replace to make one text the other.

    A column of the table is two integers (Myers 1999), so a call costs the longer text's length.
    """
    if len(one) > len(other):
        one, other = other, one
    if not one:
        return len(other)
    places: dict[str, int] = {}
    for index, char in enumerate(one):
        places[char] = places.get(char, 0) | 1 << index
    full, last, score = (1 << len(one)) - 1, 1 << (len(one) - 1), len(one)
    more, less = full, 0
    for char in other:
        same = places.get(char, 0)
        down = same | less
        across = (((same & more) + more) ^ more) | same
        up, back = less | ~(across | more), more & across
        if up & last:
            score += 1
        elif back & last:
            score -= 1
        up, back = (up << 1 | 1) & full, back << 1 & full
        more, less = (back | ~(down | up)) & full, up & down
    return score


def folded(name: str) -> str:
    """Return a name without what a person overlooks: case and composed characters."""
    return unicodedata.normalize("NFC", name).casefold()[:LONGEST]


def closest(name: str, others: Iterable[str], *, at_most: int | None = None) -> str | None:
    """Return the name with the fewest edits, case set aside; the first of equals, None of none.

    Args:
        at_most: edits; None for any number.
    """
    wanted = folded(name)
    best, fewest = None, len(wanted) + LONGEST if at_most is None else at_most
    for other in others:
        known = folded(other)
        if abs(len(known) - len(wanted)) > fewest:
            continue
        needed = edits(wanted, known)
        if needed < fewest or (needed == fewest and best is None):
            best, fewest = other, needed
    return best
