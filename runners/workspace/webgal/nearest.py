"""Find the known name that is closest to a misspelled one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

MAX_COMPARED_LENGTH = 128  # only the first characters of a name are compared


def edit_distance(one: str, other: str) -> int:
    """Return the Levenshtein distance of two texts.

    A column of the table is stored in two integers (Myers 1999), so the number of steps is the
    length of the longer text.
    """
    if len(one) > len(other):
        one, other = other, one
    if not one:
        return len(other)
    masks: dict[str, int] = {}
    for index, char in enumerate(one):
        masks[char] = masks.get(char, 0) | 1 << index
    full, last, score = (1 << len(one)) - 1, 1 << (len(one) - 1), len(one)
    positive, negative = full, 0
    for char in other:
        same = masks.get(char, 0)
        down = same | negative
        across = (((same & positive) + positive) ^ positive) | same
        up, back = negative | ~(across | positive), positive & across
        if up & last:
            score += 1
        elif back & last:
            score -= 1
        up, back = (up << 1 | 1) & full, back << 1 & full
        positive, negative = (back | ~(down | up)) & full, up & down
    return score


def fold(name: str) -> str:
    """Return a name for comparison, without case and Unicode composition."""
    return unicodedata.normalize("NFC", name).casefold()[:MAX_COMPARED_LENGTH]


def fold_all(names: Iterable[str]) -> dict[str, str]:
    """Return {folded name: name}; of names with the same folded form, the first."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(fold(name), name)
    return found


def closest(
    name: str, others: Mapping[str, str], *, max_edits: int = 2 * MAX_COMPARED_LENGTH
) -> tuple[str, int] | None:
    """Return the closest name and its edit distance; None if all exceed `max_edits`.

    Args:
        others: from `fold_all`.
    """
    wanted = fold(name)
    if wanted in others:
        return others[wanted], 0
    best, fewest, letters = None, max_edits + 1, set(wanted)
    for known, other in others.items():
        # Two cheap lower bounds: the difference in length, and the letters that the other lacks.
        if abs(len(known) - len(wanted)) < fewest and len(letters.difference(known)) < fewest:
            needed = edit_distance(wanted, known)
            if needed < fewest:
                best, fewest = other, needed
    return None if best is None else (best, fewest)
