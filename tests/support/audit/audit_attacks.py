"""Attack the audit log with the rights of the database owner: drop the triggers, then run SQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from django.db import connection

_GUARDS = [
    import_module(f"decisions.migrations.{name}")
    for name in ("0002_audit_guards", "0010_audit_seals")
]

COPIED = (
    "tenant_id, workspace_id, action, actor, resource_type, resource_id, metadata, created_at, mac"
)
_WORDS = {
    "{rows}": "decisions_auditentry",
    "{seals}": "decisions_auditseal",
    "{copied}": COPIED,
    "{forged}": COPIED.replace("mac", "'00'"),
}


@contextmanager
def guards_lifted() -> Iterator[None]:
    """Drop the triggers that protect both tables, and create them again after the block."""
    sqlite = connection.vendor == "sqlite"
    off, on = ("SQLITE_UNDO", "SQLITE") if sqlite else ("POSTGRESQL_UNDO", "POSTGRESQL")
    _execute([statement for guard in _GUARDS for statement in getattr(guard, off)])
    try:
        yield
    finally:
        _execute([statement for guard in _GUARDS for statement in getattr(guard, on)])


def _execute(statements: list[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def attack(*statements: str, changes_rows: bool = True, **params: Any) -> None:
    """Run SQL statements without the protecting triggers.

    `{rows}` and `{seals}` are replaced by the names of the tables, `{copied}` by a row's columns,
    `{forged}` by the same columns with a wrong MAC, and `%(name)s` by parameters. Each statement
    has to change a row, unless `changes_rows` is False.
    """
    with guards_lifted(), connection.cursor() as cursor:
        for statement in statements:
            for word, replacement in _WORDS.items():
                statement = statement.replace(word, replacement)
            cursor.execute(statement, params)
            if changes_rows:
                assert cursor.rowcount != 0, f"the attack changed nothing: {statement}"


@contextmanager
def move_sequence(last_id: int | None) -> Iterator[None]:
    """Let the next audit row have the id after `last_id` (None: leave it), and put the sequence
    back after the block, because PostgreSQL does not roll it back.
    """
    sqlite = connection.vendor == "sqlite"
    if sqlite:
        read = "SELECT seq FROM sqlite_sequence WHERE name = 'decisions_auditentry'"
        move = "UPDATE sqlite_sequence SET seq = %s WHERE name = 'decisions_auditentry'"
    else:
        read = "SELECT last_value, is_called FROM decisions_auditentry_id_seq"
        move = "SELECT setval('decisions_auditentry_id_seq', %s, %s)"
    with connection.cursor() as cursor:
        cursor.execute(read)
        before = cursor.fetchone() or [0]
        if last_id is not None:
            cursor.execute(move, [last_id] if sqlite else [last_id, True])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(move, list(before))


@contextmanager
def checks_lifted(*, text_metadata: bool = False) -> Iterator[None]:
    """Let the metadata be any text on SQLite; on PostgreSQL, with `text_metadata`, any text that is
    JSON, by another type of the column, until the transaction is rolled back.
    """
    sqlite = connection.vendor == "sqlite"
    if sqlite:
        _execute(["DROP INDEX IF EXISTS audit_tool", "PRAGMA ignore_check_constraints = ON"])
    elif text_metadata:
        _execute(
            [
                "DROP INDEX audit_tool",
                "ALTER TABLE decisions_auditentry ALTER COLUMN metadata TYPE json",
            ]
        )
    try:
        yield
    finally:
        if sqlite:
            _execute(["PRAGMA ignore_check_constraints = OFF"])
