"""All guards, by part of the product."""

from __future__ import annotations

import importlib

from tests.guards.guard import Guard

PARTS = ("runs", "decisions", "transports", "runners")


def guards_by_part() -> dict[str, tuple[Guard, ...]]:
    """Return the guards of each part."""
    return {part: importlib.import_module(f"tests.guards.{part}").GUARDS for part in PARTS}
