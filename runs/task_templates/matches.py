"""What a step took for the element that was meant: as its event tells it, and what to warn of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LOW_SCORE = 0.6  # of 0..1; below 0.5 nothing is taken at all
_FIELDS = ("type", "label", "score", "by", "matched", "equals")
_CHARACTERS = 200  # of a label, or of a selector


def match_of(output: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the match that a step's output tells, its texts cut; of a direct tool call, the one
    inside the tool's own output.
    """
    inner = output.get("output")
    match = output.get("match") or (inner.get("match") if isinstance(inner, Mapping) else None)
    if not isinstance(match, Mapping) or not isinstance(match.get("score"), int | float):
        return None
    told = {name: match[name] for name in _FIELDS if name in match}
    return {
        name: value[:_CHARACTERS] if isinstance(value, str) else value
        for name, value in told.items()
    }


def match_warnings(output: Mapping[str, Any]) -> list[str]:
    """Return a warning where several elements fitted alike, or the one taken fits poorly."""
    match = match_of(output)
    if match is None:
        return []
    what = f"“{match.get('label') or match.get('matched') or match.get('type')}”"
    doubts = []
    if match.get("equals", 1) > 1:
        doubts.append(f"{match['equals']} elements fit as well as {what}; the first was taken.")
    if match["score"] < LOW_SCORE:
        doubts.append(f"{what} was taken, which fits only by {match['score']} of 1.")
    return doubts
