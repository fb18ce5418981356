"""Leave the database empty after a test that commits, at a tenth of what Django's flush takes.

Django truncates every table and then writes the content types and permissions again, 0.1 to 0.2 s a
test. Here these stand, the same for every test, and rows go where there are some. Anything unusual
(content types or permissions that changed, a counting trigger that is gone) is put right the long
way, so that no test can see another's doing.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.backends.base.operations import BaseDatabaseOperations
from django.test import TransactionTestCase

from runs.queries.totals import missing_triggers

STANDING = ("auth_permission", "django_content_type")
# SQLite has no TRUNCATE: removing the runs is counted here, so its lines go after the runs do.
LAST = "runs_runtotalchange"
# A table that has grown beyond is truncated: removed rows stay in its file until a vacuum.
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
    """Have every transactional test of this process end in `empty`, and let the flush command work
    in spite of the audit guards: nothing but tests may remove rows.
    """
    BaseDatabaseOperations.execute_sql_flush = _flush_unguarded(  # type: ignore[method-assign]
        BaseDatabaseOperations.execute_sql_flush
    )
    TransactionTestCase._fixture_teardown = lambda _: empty()  # type: ignore[attr-defined]


def empty() -> None:
    """Remove every row but the content types and permissions; waits for whoever still writes."""
    global _stood
    if _stood is None or missing_triggers() or _standing() != _stood:
        call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
        _stood = _standing()
    elif connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_POSTGRESQL.format(tables=", ".join(_tables()), small=SMALL_BYTES))
    else:
        with transaction.atomic():
            flush = connection.ops.sql_flush(no_style(), _tables())
            _run([*_guard("UNDO"), *flush, *_guard()])


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
