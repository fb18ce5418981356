"""The embedded database as one file: copied while it is in use, and put in place of another."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from django.db import connection, connections

from runs.installation.backups.manifest import write_file
from runs.installation.home.errors import BackupError

NAME = "database.sqlite3"


def _place() -> Path:
    return Path(connection.settings_dict["NAME"])


def dump(folder: Path) -> str:
    """Copy the database as it is at one moment; whoever writes meanwhile goes on writing."""
    target = folder / NAME
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            closing(sqlite3.connect(f"{_place().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            # In one step: in several, each write of another process would begin it anew.
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise BackupError(f"The database cannot be copied: {error}.") from None
    _check(target)
    return NAME


def _check(file: Path) -> None:
    """Read every page of a database.

    Raises:
        BackupError: One of them is none.
    """
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            told = str(database.execute("PRAGMA quick_check").fetchone()[0])
    except sqlite3.Error as error:
        told = str(error)
    if told != "ok":
        raise BackupError(f"The database is damaged: {told.splitlines()[0]}.")


def holds_data() -> bool:
    """Tell whether there is a database already."""
    return _place().exists()


def refuse_in_use() -> None:
    """Make the database one file that nobody has open.

    Raises:
        BackupError: Somebody has.
    """
    connections.close_all()
    try:
        with closing(sqlite3.connect(_place(), timeout=1)) as database:
            # Leaving the log that readers and writers share is for the only one who is there.
            database.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise BackupError(
                "A process uses the database of this home. Stop it (`manage.py down`; workers and"
                " servers that were started by hand), then repeat."
            ) from None


def load(backup: Path) -> None:
    """Put the copy where the database belongs; what was there is out of the way already."""
    connections.close_all()
    draft = _place().with_name(".restored.sqlite3")
    with (backup / NAME).open("rb") as source:
        write_file(source, draft)
    try:
        _check(draft)
    except BackupError:
        draft.unlink()
        raise
    draft.rename(_place())


def own_files() -> list[Path]:
    """Return the files that are the database, those that it may leave beside it included."""
    return [_place().with_name(_place().name + suffix) for suffix in ("", "-wal", "-shm")]
