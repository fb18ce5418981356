"""What a process knows by heart, as a condition in SQL: who acts on it has the statement that acts
test that it still is so, and asks anew where nothing was written. Saves the question, not the test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Precondition:
    """A condition for a WHERE, and its parameters in order."""

    sql: str
    params: tuple[Any, ...]
