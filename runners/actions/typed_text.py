"""Typed text in records of browser actions: which field it goes into is not known from the call
alone, so any may be a password.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import TYPE

_TOOL_FIELDS = ("tool", "name", "action")  # of a step, a model's call, a host's action


def hide_typed_text(value: Any) -> Any:
    """Return inputs, a step or its output for a page, with the length of a text in place of each
    one that a call in it types.
    """
    if isinstance(value, list | tuple):
        return [hide_typed_text(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    shown = {name: hide_typed_text(one) for name, one in value.items()}
    args = shown.get("args")
    if isinstance(args, Mapping) and any(shown.get(name) == TYPE.name for name in _TOOL_FIELDS):
        shown["args"] = without_text(args)
    return shown


def without_text(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call that types, with the length of its text in place of it."""
    text = args.get("text")
    return {**args, "text": f"({len(text)} characters)"} if isinstance(text, str) else dict(args)
