"""Server-side prepared PostgreSQL statements, for the few that every claim, call and step runs.

The ORM compiles its SQL on every call, which takes longer than these statements take to run. With
TRANSACTION_POOLING they are not prepared: the next one may reach another connection of the server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from django.conf import settings
from django.db import connection, transaction
from django.db.models import JSONField, Model

if TYPE_CHECKING:
    from psycopg import Connection, Cursor
ModelRow = TypeVar("ModelRow", bound=Model)


class SqlStatement:
    """A WITH statement built part by part, each part with its parameters in order."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.params: list[Any] = []

    def add(self, name: str, text: str, *params: Any) -> None:
        """Add a common table expression."""
        self.parts.append(f"{name} AS ({text})")
        self.params += params

    def insert(
        self,
        name: str,
        rows: Sequence[Model],
        source: str = "r",
        *,
        columns: Mapping[str, str] | None = None,
        rows_of_may: Sequence[Model] = (),
        tail: str = "",
    ) -> None:
        """Add an insert of rows of one model, repeated for each row of the part `source`.

        Args:
            columns: expressions to insert in place of a column; `v` is the row.
            rows_of_may: rows to append only where the part `may` has a row.
            tail: the end of the insert, such as RETURNING.
        """
        sample = [*rows, *rows_of_may][0]
        meta: Any = type(sample)._meta
        fields = [field for field in meta.concrete_fields if sample.pk or not field.primary_key]
        selected = {field.column: f'v."{field.column}"' for field in fields} | dict(columns or {})
        records, params = "%s::jsonb", [_json_of(rows, fields)]
        if rows_of_may:
            records = "%s::jsonb || COALESCE((SELECT %s::jsonb FROM may), '[]')"
            params.append(_json_of(rows_of_may, fields))
        self.add(
            name,
            f'INSERT INTO "{meta.db_table}" ({", ".join(_quoted(selected))})'  # noqa: S608
            f" SELECT {', '.join(selected.values())} FROM {source},"
            f' jsonb_populate_recordset(NULL::"{meta.db_table}", {records}) v {tail}',
            *params,
        )

    def run(self, tail: str) -> tuple[Any, ...] | None:
        """Run the statement and return the first row of `tail`, its final SELECT or write."""
        return execute_prepared(f"WITH {', '.join(self.parts)} {tail}", self.params)


def _quoted(columns: Iterable[str]) -> Iterator[str]:
    return (f'"{column}"' for column in columns)


def _json_of(rows: Sequence[Model], fields: Sequence[Any]) -> str:
    values = [{field.column: getattr(row, field.attname) for field in fields} for row in rows]
    return orjson.dumps(values, default=_text_of_bytes).decode()


def _text_of_bytes(value: bytes | memoryview) -> str:
    return "\\x" + bytes(value).hex()  # as PostgreSQL reads a bytea


def execute_prepared(statement: str, params: list[Any]) -> tuple[Any, ...] | None:
    """Run a statement on Django's connection, in its transaction, and return its first row.

    The server binds the parameters and prepares the statement, because planning is half of the
    statement's time. Errors are Django's database errors.
    """
    with _executed(statement, params, _thread_cursor.on) as cursor:
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


class _ThreadCursor(threading.local):
    """The cursor of a thread, reused: creating one takes half as long as running a statement."""

    cursor: Cursor[Any] | None = None

    def on(self, raw: Connection[Any]) -> Cursor[Any]:
        """Return this thread's cursor on its psycopg connection."""
        if self.cursor is None or self.cursor.connection is not raw:
            self.cursor = _new_cursor(raw)
        return self.cursor


_thread_cursor = _ThreadCursor()


def _new_cursor(raw: Connection[Any]) -> Cursor[Any]:
    from psycopg import Cursor  # imported only with PostgreSQL: a tenth of the start-up time

    return Cursor(raw)


@contextmanager
def _executed(
    statement: str,
    params: list[Any] | Mapping[str, Any],
    cursor_on: Callable[[Connection[Any]], Cursor[Any]],
) -> Iterator[Any]:
    if settings.TRANSACTION_POOLING:
        # Django's cursor prepares nothing, and limits the statement's wait for locks.
        with connection.cursor() as cursor:
            cursor.execute(statement, params)
            yield cursor
        return
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    raw: Connection[Any] = connection.connection
    raw.prepare_threshold = 0  # Django sets None, which its own cursors need
    try:
        with connection.wrap_database_errors:
            yield cursor_on(raw).execute(statement, params)
    finally:
        raw.prepare_threshold = None


@contextmanager
def in_one_transaction() -> Iterator[None]:
    """Run the prepared statements of the block in one transaction, without BEGIN and COMMIT.

    The server commits at the end of the block, where the client sends that no more follow (Sync);
    an exception in the block rolls back. The block must use this module only, and no savepoint. In
    a transaction of the caller, and with TRANSACTION_POOLING, it is an ordinary one.
    """
    if connection.in_atomic_block or settings.TRANSACTION_POOLING:
        with transaction.atomic():
            yield
        return
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    raw: Connection[Any] = connection.connection
    try:
        with connection.wrap_database_errors, raw.pipeline():
            connection.in_atomic_block = True  # commit hooks wait, nothing reconnects or repeats
            try:
                yield
            except BaseException:
                _roll_back(raw)
                raise
            finally:
                connection.in_atomic_block = False
    except BaseException:
        connection.run_on_commit = []
        raise
    connection.run_and_clear_commit_hooks()


def _roll_back(raw: Connection[Any]) -> None:
    """Roll back what a pipeline executed; after an error of a statement the server did so."""
    from psycopg.pq import ConnStatus, PipelineStatus  # as in `_new_cursor`

    if raw.pgconn.status == ConnStatus.OK and raw.pgconn.pipeline_status == PipelineStatus.ON:
        raw.execute("ROLLBACK")


def fetch_rows(model: type[ModelRow], statement: str, params: Mapping[str, Any]) -> list[ModelRow]:
    """Run a statement that selects `columns_of(model)` and return the rows as model instances.

    Several times faster than a queryset, which compiles its SQL on every call. On SQLite, which
    prepares nothing and stores times and JSON as texts, it is a raw queryset.
    """
    if connection.vendor != "postgresql":
        return list(model._default_manager.raw(statement, params))
    return [row for row, _ in fetch_rows_and_more(model, statement, params)]


def fetch_rows_and_more(
    model: type[ModelRow], statement: str, params: Mapping[str, Any]
) -> list[tuple[ModelRow, Sequence[Any]]]:
    """Return the same with the columns that the statement selects after those of the model."""
    fields = model._meta.concrete_fields
    names = [field.attname for field in fields]
    is_json = [isinstance(field, JSONField) for field in fields]
    # Not on the thread's cursor, which would keep the rows in memory.
    with _executed(statement, params, _new_cursor) as cursor:
        found = cursor.fetchall()
    size = len(fields)
    return [
        (
            model.from_db(
                "default",
                names,
                [
                    orjson.loads(value) if json and value is not None else value
                    for json, value in zip(is_json, row[:size], strict=True)
                ],
            ),
            row[size:],
        )
        for row in found
    ]


def rows_of_json(model: type[ModelRow], text: str) -> list[ModelRow]:
    """Return the rows that a statement selected as one JSON list of objects."""
    fields = model._meta.concrete_fields
    names = [field.attname for field in fields]
    return [
        model.from_db(
            "default",
            names,
            [
                record[field.column]
                if isinstance(field, JSONField)
                else field.to_python(record[field.column])
                for field in fields
            ],
        )
        for record in orjson.loads(text)
    ]


@cache
def columns_of(model: type[Model], table: str) -> str:
    """Return the model's columns for a SELECT from the alias `table`, in field order."""
    return ", ".join(f'{table}."{field.column}"' for field in model._meta.concrete_fields)
