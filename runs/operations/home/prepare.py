"""Prepare a home before any command: create its folders and migrate its embedded database."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from runs.operations.home.damage import damage_message
from runs.operations.home.errors import (
    DatabaseDamaged,
    HomeUnusable,
    MigrationsMissing,
    PoolingNotSet,
)
from runs.operations.home.locks import locked
from runs.operations.home.paths import HomePaths, home_paths
from runs.operations.home.pooling import pools_transactions

POOLING_NOT_SET = (
    "DATABASE_URL is a pooler in transaction mode. Set CONTINUITY_TRANSACTION_POOLING=true for all"
    " processes, or let it pool sessions (PgBouncer: pool_mode = session)."
)
_checked_databases: set[str] = set()


def prepare_home() -> None:
    """Prepare CONTINUITY_HOME and its database; fast if they are ready, safe to run concurrently.

    Migrates the embedded database. A database of DATABASE_URL is only checked, once per process:
    several machines may share it, so an operator migrates it.

    Raises:
        HomeUnusable: The home cannot be created or written, or its database cannot be migrated.
        MigrationsMissing: The database of DATABASE_URL needs `manage.py migrate`.
        PoolingNotSet: The database's pooler needs CONTINUITY_TRANSACTION_POOLING.
        DatabaseDamaged: The database is damaged.
    """
    paths = home_paths()
    create_folders(paths)
    if settings.EMBEDDED:
        with _os_errors_reported(paths):
            _migrate_embedded(paths)
    if not settings.EMBEDDED:
        check_migrations()
        check_pooling()


def create_folders(paths: HomePaths) -> None:
    """Create the home's folders and make them accessible to their owner only.

    Raises:
        HomeUnusable: A folder cannot be created or written.
    """
    with _os_errors_reported(paths):
        for folder in (paths.home, paths.logs, paths.redis):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if paths.home.stat().st_mode & 0o077:
            paths.home.chmod(0o700)
        if not os.access(paths.home, os.W_OK | os.X_OK):
            raise PermissionError(None, "it is read-only")


@contextmanager
def _os_errors_reported(paths: HomePaths) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise HomeUnusable(
            f"CONTINUITY_HOME {paths.home} cannot be used: {exc.strerror or exc}."
            " Set CONTINUITY_HOME to a folder that you can write."
        ) from exc


def unapplied_migrations() -> list[str]:
    """Return the migrations that are not applied to the database, as app.name."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def check_migrations() -> None:
    """Check once per process that the schema of DATABASE_URL's database is up to date.

    Raises:
        HomeUnusable: The database does not answer.
        DatabaseDamaged: It is damaged.
        MigrationsMissing: Migrations are not applied.
    """
    url = str(connection.settings_dict["NAME"])
    if url in _checked_databases:
        return
    try:
        missing = unapplied_migrations()
    except Error as exc:
        if (message := damage_message(exc)) is not None:
            raise DatabaseDamaged(message) from exc
        reason = str(exc).strip().splitlines()[0]
        raise HomeUnusable(
            f"The database of DATABASE_URL does not answer ({reason})."
            " Start it, or correct DATABASE_URL."
        ) from exc
    if missing:
        raise MigrationsMissing(
            f"The database of DATABASE_URL lacks {len(missing)} migrations"
            f" ({missing[0]}, …). Run `manage.py migrate` once, then start again."
        )
    _checked_databases.add(url)


def check_pooling() -> None:
    """Check that a pooler in transaction mode is configured: without the setting, prepared
    statements of other clients would be executed. A database that does not answer is not checked.

    Raises:
        PoolingNotSet: It is not configured.
    """
    with suppress(Error):
        if not settings.TRANSACTION_POOLING and pools_transactions():
            raise PoolingNotSet(POOLING_NOT_SET)


def _migrate_embedded(paths: HomePaths) -> None:
    marker = paths.home / "migrated"
    if _is_migrated(marker):
        return
    with locked(paths.home / "migrate.lock"):
        if _is_migrated(marker):
            return
        try:
            call_command("migrate", verbosity=0, interactive=False)
        except Error as exc:
            if (message := damage_message(exc)) is not None:
                raise DatabaseDamaged(message) from exc
            raise HomeUnusable(
                f"The database in {paths.home} cannot be migrated ({exc})."
                " Free some space, or move the file away to start with an empty one."
            ) from exc
        draft = marker.with_name(".migrated")
        draft.write_text(json.dumps({**_read_marker(marker), **_current_migrations()}))
        draft.replace(marker)


def _is_migrated(marker: Path) -> bool:
    """Return whether the marker lists all current migrations; some commands load fewer apps."""
    return _current_migrations().items() <= _read_marker(marker).items()


def _read_marker(marker: Path) -> dict[str, Any]:
    """Return the migrations that were applied to this database file; {} if it is another file."""
    try:
        applied: dict[str, Any] = json.loads(marker.read_text())
    except (OSError, ValueError):
        return {}
    return applied if applied.get("inode") == _inode() else {}


def _current_migrations() -> dict[str, Any]:
    """Return the database file's inode and the names of the migration files, by app."""
    found: dict[str, Any] = {"inode": _inode()}
    for app in apps.get_app_configs():
        try:
            names = os.listdir(Path(app.path) / "migrations")  # noqa: PTH208  (only the names are needed)
        except OSError:
            continue
        found[app.label] = sorted(name for name in names if name.endswith(".py"))
    return found


def _inode() -> int:
    try:
        return Path(connection.settings_dict["NAME"]).stat().st_ino
    except OSError:
        return 0
