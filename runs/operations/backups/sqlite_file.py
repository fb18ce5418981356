"""Dump and load the embedded database: copy its file while in use, and replace it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from django.db import connection, connections

from runs.operations.backups.manifest import write_file
from runs.operations.home.errors import BackupError

NAME = "database.sqlite3"


def _path() -> Path:
    return Path(connection.settings_dict["NAME"])


def dump(folder: Path) -> str:
    """Copy a consistent snapshot of the database without blocking writers; return its file name."""
    target = folder / NAME
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            closing(sqlite3.connect(f"{_path().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            # In one step: between steps a write of another process would restart the copy.
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise BackupError(f"The database cannot be copied: {error}.") from None
    _check(target)
    return NAME


def _check(file: Path) -> None:
    """Read every page of a database.

    Raises:
        BackupError: The file is damaged, or not a database.
    """
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            result = str(database.execute("PRAGMA quick_check").fetchone()[0])
    except sqlite3.Error as error:
        result = str(error)
    if result != "ok":
        raise BackupError(f"The database is damaged: {result.splitlines()[0]}.")


def holds_data() -> bool:
    """Return whether the database exists."""
    return _path().exists()


def refuse_in_use() -> None:
    """Check that no process uses the database, and merge its write-ahead log into its file.

    Raises:
        BackupError: A process uses it.
    """
    connections.close_all()
    try:
        with closing(sqlite3.connect(_path(), timeout=1)) as database:
            # SQLite leaves WAL mode only for an exclusive connection.
            database.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise BackupError(
                "A process uses the database of this home. Stop it (`manage.py down`; workers and"
                " servers that were started by hand), then repeat."
            ) from None


def load(backup: Path) -> None:
    """Put the copy in place of the database, which the caller has moved away."""
    connections.close_all()
    draft = _path().with_name(".restored.sqlite3")
    with (backup / NAME).open("rb") as source:
        write_file(source, draft)
    try:
        _check(draft)
    except BackupError:
        draft.unlink()
        raise
    draft.rename(_path())


def own_files() -> list[Path]:
    """Return the database's file and those that SQLite may create beside it."""
    return [_path().with_name(_path().name + suffix) for suffix in ("", "-wal", "-shm")]
