"""The page element that a step's locator matched: the data for events, and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LOW_SCORE = 0.6  # of 0..1; below 0.5 nothing matches at all
_FIELDS = ("type", "label", "score", "by", "matched", "equals")
_CHARACTERS = 200  # of a label, or of a selector


def match_of(output: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the match in a step's output, or in the tool output inside it; long texts are cut."""
    inner = output.get("output")
    match = output.get("match") or (inner.get("match") if isinstance(inner, Mapping) else None)
    if not isinstance(match, Mapping) or not isinstance(match.get("score"), int | float):
        return None
    fields = {name: match[name] for name in _FIELDS if name in match}
    return {
        name: value[:_CHARACTERS] if isinstance(value, str) else value
        for name, value in fields.items()
    }


def match_warnings(output: Mapping[str, Any]) -> list[str]:
    """Return warnings if several elements matched equally well, or the match score is low."""
    match = match_of(output)
    if match is None:
        return []
    element = f"“{match.get('label') or match.get('matched') or match.get('type')}”"
    warnings = []
    if match.get("equals", 1) > 1:
        warnings.append(
            f"{match['equals']} elements fit as well as {element}; the first was taken."
        )
    if match["score"] < LOW_SCORE:
        warnings.append(f"{element} was taken with a match score of only {match['score']} of 1.")
    return warnings
