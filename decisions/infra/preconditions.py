"""SQL preconditions of cached values.

A process that acts on a cached value adds its precondition to the statement that writes. If the
statement changes no row, the cache was stale and the process reads the value again. This saves the
query, not the check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Precondition:
    """A condition for a WHERE, and its parameters in order."""

    sql: str
    params: tuple[Any, ...]
