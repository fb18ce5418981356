"""Make a home ready for any command: its folders, and its database's schema, under a lock."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from runs.installation.home.errors import HomeUnusable, MigrationsMissing
from runs.installation.home.locks import locked
from runs.installation.home.paths import HomePaths, home_paths

_checked_databases: set[str] = set()


def prepare_home() -> None:
    """Make CONTINUITY_HOME and its database ready; cheap when they are, safe with many at once.

    The embedded database is migrated here. One named by DATABASE_URL is only looked at, once a
    process: several machines share it, so a person decides when it changes.

    Raises:
        HomeUnusable: The home cannot be made or written, or its database cannot be migrated.
        MigrationsMissing: DATABASE_URL names a database that `manage.py migrate` has to see first.
    """
    at = home_paths()
    try:
        create_folders(at)
        if settings.EMBEDDED:
            _migrate_embedded(at)
    except OSError as exc:
        raise HomeUnusable(
            f"CONTINUITY_HOME {at.home} cannot be used: {exc.strerror or exc}."
            " Set CONTINUITY_HOME to a folder that you may write."
        ) from exc
    if not settings.EMBEDDED:
        check_migrations()


def create_folders(at: HomePaths) -> None:
    """Make the home's folders, for its owner alone, also where the home was there before."""
    for folder in (at.home, at.logs, at.redis):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if at.home.stat().st_mode & 0o077:
        at.home.chmod(0o700)
    if not os.access(at.home, os.W_OK | os.X_OK):
        raise PermissionError(None, "it is read-only")


def unapplied_migrations() -> list[str]:
    """Return the migrations that the database has not seen, as app.name."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def check_migrations() -> None:
    """Refuse to go on with a database whose schema is older than the code; asks once a process."""
    url = str(connection.settings_dict["NAME"])
    if url in _checked_databases:
        return
    try:
        missing = unapplied_migrations()
    except DatabaseError as exc:
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


def _migrate_embedded(at: HomePaths) -> None:
    marker = at.home / "migrated"
    if _is_known(marker):
        return
    with locked(at.home / "migrate.lock"):
        if _is_known(marker):
            return
        try:
            call_command("migrate", verbosity=0, interactive=False)
        except DatabaseError as exc:
            raise HomeUnusable(
                f"The database in {at.home} cannot be prepared ({exc})."
                " Free some space, or move the file away to start with an empty one."
            ) from exc
        draft = marker.with_name(".migrated")
        draft.write_text(json.dumps({**_known(marker), **_present()}))
        draft.replace(marker)


def _is_known(marker: Path) -> bool:
    """Tell whether all that is there now was migrated before; some commands see fewer apps."""
    return _present().items() <= _known(marker).items()


def _known(marker: Path) -> dict[str, Any]:
    try:
        known: dict[str, Any] = json.loads(marker.read_text())
    except (OSError, ValueError):
        return {}
    return known if known.get("inode") == _inode() else {}


def _present() -> dict[str, Any]:
    """Return what changes when a migration is added or the database file becomes another one."""
    found: dict[str, Any] = {"inode": _inode()}
    for app in apps.get_app_configs():
        try:
            names = os.listdir(Path(app.path) / "migrations")  # noqa: PTH208  (names are enough)
        except OSError:
            continue
        found[app.label] = sorted(name for name in names if name.endswith(".py"))
    return found


def _inode() -> int:
    try:
        return Path(connection.settings_dict["NAME"]).stat().st_ino
    except OSError:
        return 0
