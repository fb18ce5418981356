"""Empty the database after a test that commits, in a tenth of the time of Django's flush.

Django's flush truncates every table and then creates the content types and permissions again, which
takes 0.1 to 0.2 s per test. `empty` keeps the content types and permissions, which are the same for
every test, and deletes only the rows that exist. If content types or permissions changed, or if a
trigger that counts runs is missing, it falls back to the full flush. No test sees rows of another.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from django.core.management import call_command
from django.core.management.color import no_style
from django.db import OperationalError, connection, transaction
from django.db.backends.base.operations import BaseDatabaseOperations
from django.test import TransactionTestCase
from psycopg.errors import DeadlockDetected

from runs.queries.totals import missing_triggers

STANDING = ("auth_permission", "django_content_type")
# A trigger adds a row to this table for each deleted run. SQLite has no TRUNCATE, so the deletes
# fire the trigger; this table must be emptied after the table of runs.
LAST = "runs_runtotalchange"
# Larger tables are truncated, because deleted rows stay in the table's file until a vacuum.
SMALL_BYTES = 128 * 1024

_GUARDS = [
    import_module(f"decisions.migrations.{name}")
    for name in ("0002_audit_guards", "0010_audit_seals")
]
_POSTGRESQL = """
LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE;
SET LOCAL session_replication_role = replica;
DO $$
DECLARE one regclass;
BEGIN
  IF (SELECT max(pg_relation_size(oid)) FROM pg_class WHERE oid = ANY ('{{{tables}}}'::regclass[]))
     > {small} THEN
    TRUNCATE {tables};
  ELSE
    FOREACH one IN ARRAY '{{{tables}}}'::regclass[] LOOP
      EXECUTE 'DELETE FROM ' || one;
    END LOOP;
  END IF;
END $$
"""
_Facts = tuple[Any, ...]
_stood: _Facts | None = None


def empty_after_each_test() -> None:
    """Call `empty` after every transactional test of this process.

    Also let the flush command remove rows of the audit log, which triggers forbid elsewhere.
    """
    BaseDatabaseOperations.execute_sql_flush = _flush_unguarded(  # type: ignore[method-assign]
        BaseDatabaseOperations.execute_sql_flush
    )
    TransactionTestCase._fixture_teardown = lambda _: empty()  # type: ignore[attr-defined]
    # A new connection costs 5 ms, and PostgreSQL reads its catalog again in it.
    TransactionTestCase._should_reload_connections = (  # type: ignore[attr-defined]
        lambda _: connection.errors_occurred or _is_old()
    )


def _is_old() -> bool:
    """Return whether the product would close the connection during a test of three minutes."""
    return connection.close_at is not None and connection.close_at < time.monotonic() + 180


def remember_standing_rows() -> None:
    """Expect the content types and permissions that exist now before every test."""
    global _stood
    _stood = _standing()


def empty() -> None:
    """Delete every row except content types and permissions; wait for open write transactions."""
    if _stood is None or missing_triggers() or _standing() != _stood:
        call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
        remember_standing_rows()
    elif connection.vendor == "postgresql":
        _empty_postgresql()
    else:
        with transaction.atomic():
            flush = connection.ops.sql_flush(no_style(), _tables())
            _run([*_guard("UNDO"), *flush, *_guard()])


def _empty_postgresql(tries: int = 3) -> None:
    try:
        _run([_POSTGRESQL.format(tables=", ".join(_tables()), small=SMALL_BYTES)])
    except OperationalError as error:  # a thread of the test is still writing
        if tries == 1 or not isinstance(error.__cause__, DeadlockDetected):
            raise
        _empty_postgresql(tries - 1)


@functools.cache
def _tables() -> list[str]:
    named = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return [*sorted({*named} - {*STANDING, LAST}), LAST]


def _standing() -> _Facts:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(*) FROM auth_permission), (SELECT max(id) FROM auth_permission),"
            " (SELECT count(*) FROM django_content_type), (SELECT max(id) FROM django_content_type)"
        )
        return tuple(cursor.fetchone() or ())


def _flush_unguarded(flush: Any) -> Any:
    def unguarded(self: BaseDatabaseOperations, statements: Sequence[str]) -> None:
        _run(_guard("UNDO"))
        flush(self, statements)
        _run([*connection.ops.sql_flush(no_style(), [LAST]), *_guard()])

    return unguarded


def _guard(way: str = "") -> list[str]:
    name = "_".join(filter(None, (connection.vendor.upper(), way)))
    return [statement for guard in _GUARDS for statement in getattr(guard, name)]


def _run(statements: Sequence[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
