"""Apply and undo a line diff."""

from __future__ import annotations

from collections.abc import Sequence

from runners.workspace.writing.line_diff import Hunk


def apply_diff(old: str, hunks: Sequence[Hunk]) -> str:
    """Return the new text.

    Raises:
        ValueError: The hunks do not apply to this text.
    """
    return _apply(old, [(h["startOld"] - 1, h["linesOld"], h["linesNew"]) for h in hunks])


def undo_diff(new: str, hunks: Sequence[Hunk]) -> str:
    """Return the old text.

    Raises:
        ValueError: The hunks do not result in this text.
    """
    return _apply(new, [(h["startNew"] - 1, h["linesNew"], h["linesOld"]) for h in hunks])


def _apply(text: str, changes: list[tuple[int, list[str], list[str]]]) -> str:
    lines = text.split("\n")
    result: list[str] = []
    at = 0
    for start, removed, added in changes:
        if start < at or lines[start : start + len(removed)] != removed:
            raise ValueError(f"the text differs from the diff at line {start + 1}")
        result += lines[at:start]
        result += added
        at = start + len(removed)
    return "\n".join(result + lines[at:])
