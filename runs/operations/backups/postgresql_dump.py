"""Dump and load a PostgreSQL database with pg_dump and pg_restore. Credentials are passed in their
environment, because every user of the machine can read command lines.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from django.db import Error, connection, connections

from runners.child_environment import child_environment
from runs.operations.home.errors import BackupError
from runs.operations.home.pooling import pools_transactions

NAME = "database.dump"
_FILLED_BY_MIGRATE = {"django_migrations", "django_content_type", "auth_permission"}
_OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
      AND pid <> pg_backend_pid()
"""


def dump(folder: Path) -> str:
    """Write a consistent snapshot of the database without blocking writers; return its name."""
    target = folder / NAME
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    _run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--file", str(target))
    return NAME


def holds_data() -> bool:
    """Return whether our tables have rows besides those that `migrate` creates."""
    tables = [table for table in _own_tables() if table not in _FILLED_BY_MIGRATE]
    if not tables:
        return False
    asked = " OR ".join(f'EXISTS (SELECT 1 FROM "{table}")' for table in tables)  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {asked}")
        return bool(cursor.fetchone()[0])


def _own_tables() -> list[str]:
    return connection.introspection.django_table_names(only_existing=True)


def refuse_in_use() -> None:
    """Check that there is no other connection to the database.

    Raises:
        BackupError: There is one, or the database does not answer.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute(_OTHERS)
            others = int(cursor.fetchone()[0])
    except Error as error:
        reason = str(error).strip().splitlines()[0]
        raise BackupError(f"The database of DATABASE_URL does not answer ({reason}).") from None
    if others:
        raise BackupError(
            f"{others} other connections use the database of DATABASE_URL. Stop every web, worker"
            " and scheduler, then repeat."
        )


def load(backup: Path) -> None:
    """Replace the content of the database, in one transaction. Empty tables are dropped before:
    `migrate` may have created some that the backup does not know.
    """
    if not holds_data() and (tables := _own_tables()):
        names = ", ".join(f'"{table}"' for table in tables)
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {names} CASCADE")
    connections.close_all()
    name = connection.settings_dict["NAME"]
    _run(
        "pg_restore",
        "--clean",
        "--if-exists",
        "--no-owner",
        "--no-privileges",
        "--single-transaction",
        "--exit-on-error",
        # The name follows; if there is none, the service in DATABASE_URL has it.
        "--dbname",
        *([] if name else [""]),
        file=backup / NAME,
    )


def _run(program: str, *options: str, file: Path | None = None) -> None:
    """Run a program on the configured database, whose name follows the options; then the file."""
    database = connection.settings_dict
    if "sslpassword" in database["OPTIONS"]:
        raise BackupError(
            f"{program} cannot be given the sslpassword of DATABASE_URL. Use a client key without a"
            " password, which only its owner can read."
        )
    if pools_transactions():
        raise BackupError(
            f"DATABASE_URL is a pooler in transaction mode, where the settings of {program} would"
            " stay for other clients. Repeat with the server's own address as DATABASE_URL."
        )
    if shutil.which(program) is None:
        raise BackupError(
            f"{program} is not on PATH. Install PostgreSQL's client programs, of the server's"
            " version or a newer one (Debian: `apt-get install postgresql-client`), then repeat."
        )
    command, credentials = connection.client.settings_to_cmd_args_env(database, options)
    done = subprocess.run(
        [program, *command[1:], *([str(file)] if file else [])],
        env=child_environment("PG*", "KRB5*", **(credentials or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        reason = (errors or done.stderr.splitlines() or [f"exit {done.returncode}"])[0].strip()
        raise BackupError(f"{program} failed, and nothing was changed: {reason[:300]}")
