"""Which name is closest to the one that somebody wrote."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

MAX_COMPARED_LENGTH = 128  # characters of a name that are compared


def edit_distance(one: str, other: str) -> int:
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


def fold(name: str) -> str:
    """Return a name without what a person overlooks: case and composed characters."""
    return unicodedata.normalize("NFC", name).casefold()[:MAX_COMPARED_LENGTH]


def fold_all(names: Iterable[str]) -> dict[str, str]:
    """Return names by their folded form, the first of those that fold alike."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(fold(name), name)
    return found


def closest(
    name: str, others: Mapping[str, str], *, at_most: int = 2 * MAX_COMPARED_LENGTH
) -> tuple[str, int] | None:
    """Return the name with the fewest edits, and how many; None where all need more than `at_most`.

    Args:
        others: as `fold_all` gives them.
    """
    wanted = fold(name)
    if wanted in others:
        return others[wanted], 0
    best, fewest, letters = None, at_most + 1, set(wanted)
    for known, other in others.items():
        # Both are lower bounds, and cheap: what differs in length, and letters the other has not.
        if abs(len(known) - len(wanted)) < fewest and len(letters.difference(known)) < fewest:
            needed = edit_distance(wanted, known)
            if needed < fewest:
                best, fewest = other, needed
    return None if best is None else (best, fewest)
