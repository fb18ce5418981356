"""Leave out the lines of a page that its reader has already got."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

SHORTEST = 6  # unchanged lines in a row that are left out; fewer are repeated as context
_NEW_MARK = re.compile(r"^(\[\d+\])\*")  # elements that are new since the last observation


def changed_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the lines of `after`, with a note in place of each long run of lines that stand in
    `before` too.
    """
    matcher = SequenceMatcher(None, _unmarked(before), _unmarked(after), autojunk=False)
    shown: list[str] = []
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag == "equal" and end - start >= SHORTEST:
            shown.append(f"({end - start} unchanged lines)")
        else:
            shown += after[start:end]
    return shown


def _unmarked(lines: Sequence[str]) -> list[str]:
    return [_NEW_MARK.sub(r"\1", line) for line in lines]
