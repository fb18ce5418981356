"""Recognize a damaged database, and say what to do about it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from django.db import Error, connection

from runs.operations.home.errors import DatabaseDamaged

WHOLE_CHECK_BYTES = 256 * 1024 * 1024  # a larger file gets the quick check
_SQLITE_CODES = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_IOERR_SHORT_READ,  # the file ends too early
}
_POSTGRESQL_CODES = {"XX001", "XX002"}  # data_corrupted, index_corrupted
RECOVERY = (
    "Stop everything that uses it, and restore a backup: `manage.py restore DIR --force`"
    " (docs/operations.md, Backup and restore)."
)


def damage_message(error: Error) -> str | None:
    """Return a sentence about the damage that an error is due to, and what to do; None if the
    database is not damaged.
    """
    reason = _reason(error)
    return None if reason is None else f"{describe(reason)} {RECOVERY}"


def describe(reason: str) -> str:
    """Return the sentence that names the damaged database."""
    name = connection.settings_dict["NAME"]
    kind = "file " if connection.vendor == "sqlite" else ""
    return f"The database {kind}{name} is damaged: {reason.removesuffix('.')}."


def find_damage(*, whole_bytes: int = WHOLE_CHECK_BYTES) -> str | None:
    """Check the embedded database's file and its write-ahead log; return what is damaged, or None.

    Checks contents and indexes of a file up to `whole_bytes`, and the structure of a larger one.
    PostgreSQL checks pages when it reads them; there the answer is always None.
    """
    if connection.vendor != "sqlite":
        return None
    file = Path(connection.settings_dict["NAME"])
    if not file.exists():
        return None
    check = "integrity_check" if file.stat().st_size <= whole_bytes else "quick_check"
    try:
        with closing(sqlite3.connect(file, timeout=20)) as database:
            # Not read-only: the last process may have left a log that has to be recovered.
            result = str(database.execute(f"PRAGMA {check}(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error) if _is_damage(error) else None
    return None if result == "ok" else _first_line(result)


def refuse_damage() -> None:
    """Check the structure of an embedded database before processes use it.

    Raises:
        DatabaseDamaged: It is damaged.
    """
    if (reason := find_damage(whole_bytes=0)) is not None:
        raise DatabaseDamaged(f"{describe(reason)} {RECOVERY}")


def _reason(error: Error) -> str | None:
    cause = error.__cause__
    if getattr(cause, "sqlstate", None) in _POSTGRESQL_CODES:
        return _first_line(str(error))
    if isinstance(cause, sqlite3.Error) and _is_damage(cause):
        return _first_line(str(error))
    # Other errors may be due to damage too: a text that is not UTF-8, a page past the file's end.
    return find_damage()


def _is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error is about the content of the file, and not about its use: a lock, a
    full disk, missing permissions.
    """
    code = getattr(error, "sqlite_errorcode", 0)
    return code in _SQLITE_CODES or code & 0xFF in _SQLITE_CODES


def _first_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if not line.startswith("***")]
    return lines[0] if lines else text.strip()
