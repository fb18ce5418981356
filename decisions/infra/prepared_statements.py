"""PostgreSQL statements that the server prepares: the few that every claim, call and step makes.

The ORM compiles a statement anew each time, which costs more than these take to run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from django.db import connection
from django.db.models import JSONField, Model

from decisions.infra.preconditions import Precondition

if TYPE_CHECKING:
    from psycopg import Connection, Cursor
ModelRow = TypeVar("Row", bound=Model)


class SqlStatement:
    """A WITH statement that grows part by part, each with its parameters in order."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.params: list[Any] = []

    def add(self, name: str, text: str, *params: Any) -> None:
        """Add a part."""
        self.parts.append(f"{name} AS ({text})")
        self.params += params

    def insert(
        self, name: str, rows: Sequence[Model], source: str = "r", *, last: Model | None = None
    ) -> None:
        """Insert rows of one model, once for each row of the part `source`; behind them `last`,
        where the part `may` has a row.
        """
        one = rows[0] if last is None else last
        meta: Any = type(one)._meta
        fields = [field for field in meta.concrete_fields if one.pk or not field.primary_key]
        columns = ", ".join(f'"{field.column}"' for field in fields)
        picked = ", ".join(f'v."{field.column}"' for field in fields)
        values, more = [_values_of(row, fields) for row in rows], []
        given = "%s::jsonb"
        if last is not None:
            given = "%s::jsonb || COALESCE((SELECT %s::jsonb FROM may), '[]')"
            more = [orjson.dumps(_values_of(last, fields)).decode()]
        self.add(
            name,
            f'INSERT INTO "{meta.db_table}" ({columns}) SELECT {picked} FROM {source},'  # noqa: S608
            f' jsonb_populate_recordset(NULL::"{meta.db_table}", {given}) v',
            orjson.dumps(values).decode(),
            *more,
        )

    def run(self, tail: str) -> tuple[Any, ...] | None:
        """Run it, and return the first row of its tail."""
        return execute_prepared(f"WITH {', '.join(self.parts)} {tail}", self.params)


def _values_of(row: Model, fields: Sequence[Any]) -> dict[str, Any]:
    return {field.column: getattr(row, field.attname) for field in fields}


def execute_prepared(statement: str, params: list[Any]) -> tuple[Any, ...] | None:
    """Run a statement on Django's own connection, in its transaction, and return its first row.

    Bound and prepared by the server: planning takes half the time of these statements, and there
    are only a few of them. Errors are Django's, as if its own cursor had been used.
    """
    with _prepared(statement, params, _kept.of) as cursor:
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def all_hold(known: Sequence[Precondition]) -> bool:
    """Tell whether all of this still is so, in one round trip."""
    wheres = " AND ".join(one.sql for one in known)
    params = [param for one in known for param in one.params]
    return execute_prepared(f"SELECT 1 WHERE {wheres}", params) is not None


class _Kept(threading.local):
    """A thread's cursor, kept: to make one takes as long as half of what these statements take."""

    cursor: Cursor[Any] | None = None

    def of(self, line: Connection[Any]) -> Cursor[Any]:
        """Return the cursor on the thread's connection."""
        if self.cursor is None or self.cursor.connection is not line:
            self.cursor = _new_cursor(line)
        return self.cursor


_kept = _Kept()


def _new_cursor(line: Connection[Any]) -> Cursor[Any]:
    from psycopg import Cursor  # only where PostgreSQL is used: it costs a tenth of a start

    return Cursor(line)


@contextmanager
def _prepared(
    statement: str, params: list[Any], cursor_on: Callable[[Connection[Any]], Cursor[Any]]
) -> Iterator[Cursor[Any]]:
    connection.ensure_connection()
    line: Connection[Any] = connection.connection
    line.prepare_threshold = 0  # Django turns preparing off, which its own cursors need
    try:
        with connection.wrap_database_errors:
            yield cursor_on(line).execute(statement, params)
    finally:
        line.prepare_threshold = None


def fetch_rows(model: type[ModelRow], statement: str, params: list[Any]) -> list[ModelRow]:
    """Run a statement that selects `columns_of(model)` and return the rows as the model's.

    Several times cheaper than a queryset, which compiles its statement anew each time; for the two
    reads that every claim makes.
    """
    fields = model._meta.concrete_fields
    names = [field.attname for field in fields]
    is_json = [isinstance(field, JSONField) for field in fields]
    # Not on the kept cursor, which would hold the rows.
    with _prepared(statement, params, _new_cursor) as cursor:
        found = cursor.fetchall()
    return [
        model.from_db(
            "default",
            names,
            [
                orjson.loads(value) if json and value is not None else value
                for json, value in zip(is_json, row, strict=True)
            ],
        )
        for row in found
    ]


@cache
def columns_of(model: type[Model], table: str) -> str:
    """Return the model's columns for a SELECT, in the order of its fields; `table` is their
    alias.
    """
    return ", ".join(f'{table}."{field.column}"' for field in model._meta.concrete_fields)
