"""What somebody with the database owner's rights can do to the audit log: guards lifted, SQL."""

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
    """Take the triggers off both tables, and put them back."""
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
    """Run statements past every guard; `{rows}` and `{seals}` stand for the tables, `{copied}`
    for a row's columns, `{forged}` for these with a wrong MAC, `%(name)s` for parameters.
    """
    with guards_lifted(), connection.cursor() as cursor:
        for statement in statements:
            for word, meant in _WORDS.items():
                statement = statement.replace(word, meant)
            cursor.execute(statement, params)
            assert cursor.rowcount != 0, f"the attack changed nothing: {statement}"
