"""UPDATE … RETURNING, which both databases support and the ORM does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F, Model, QuerySet, Value
from django.db.models.functions import Greatest
from django.db.models.sql.subqueries import UpdateQuery


def update_returning(
    rows: QuerySet[Any], values: Mapping[str, Any], returning: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Update the rows in one statement and return these columns of each.

    The values are as the driver returns them: SQLite returns JSON columns as text.
    """
    query: Any = rows.query.chain(UpdateQuery)
    query.add_update_values(dict(values))
    statement, params = query.get_compiler(connection=connection).as_sql()
    columns = ", ".join(connection.ops.quote_name(_column(rows.model, name)) for name in returning)
    with connection.cursor() as cursor:
        cursor.execute(f"{statement} RETURNING {columns}", params)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def _column(model: type[Model], name: str) -> str:
    field: Any = model._meta.get_field(name)
    return str(field.column)


def not_before(column: str, now: datetime) -> Greatest:
    """Return an expression that never sets a time back, even if the clock goes back."""
    return Greatest(F(column), Value(now))
