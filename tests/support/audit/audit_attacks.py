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


def attack(*statements: str, **params: Any) -> None:
    """Run SQL statements without the protecting triggers.

    `{rows}` and `{seals}` are replaced by the names of the tables, `{copied}` by a row's columns,
    `{forged}` by the same columns with a wrong MAC, and `%(name)s` by parameters.
    """
    with guards_lifted(), connection.cursor() as cursor:
        for statement in statements:
            for word, replacement in _WORDS.items():
                statement = statement.replace(word, replacement)
            cursor.execute(statement, params)
            assert cursor.rowcount != 0, f"the attack changed nothing: {statement}"
