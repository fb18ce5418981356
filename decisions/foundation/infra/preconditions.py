"""SQL preconditions of values that were read before, or cached in this process.

The statement or transaction that acts on such a value also tests its precondition. If it does not
hold, nothing is written, and the value is read again. So a cache saves queries, not checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from decisions.foundation.infra.prepared_statements import execute_prepared


@dataclass(frozen=True, slots=True)
class Precondition:
    """A condition for a WHERE, the same on PostgreSQL and SQLite, and its parameters in order."""

    sql: str
    params: tuple[Any, ...]


def all_hold(preconditions: Sequence[Precondition]) -> bool:
    """Return whether all preconditions hold, in one query."""
    if not preconditions:
        return True
    statement = f"SELECT 1 WHERE {' AND '.join(one.sql for one in preconditions)}"
    params = [param for one in preconditions for param in one.params]
    if connection.vendor == "postgresql":
        return execute_prepared(statement, params) is not None
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchone() is not None
