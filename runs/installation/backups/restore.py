"""Restoring a backup: everything is checked first, then put in place; what fails on the way is
undone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.db.migrations.loader import MigrationLoader

from artifacts.storage.blobs import blob_path, blob_storage
from decisions.audit.record import AuditEvent, record
from decisions.security.keys import key_fingerprints
from runs.installation.backups import postgresql_dump, sqlite_file
from runs.installation.backups.create import FOLDERS
from runs.installation.backups.manifest import Manifest, check_backup, list_blobs, write_file
from runs.installation.home.errors import BackupError
from runs.installation.home.paths import home_paths
from runs.installation.home.prepare import create_folders, prepare_home, unapplied_migrations
from runs.installation.home.state import is_up

Say = Callable[[str], None]


def restore_backup(folder: Path, *, force: bool, without_keys: bool, say: Say) -> None:
    """Put a backup in place of what this home and this database hold.

    Args:
        force: what is there already is replaced; files and the embedded database are moved aside.
        without_keys: go on without the keys that the backup was made under.

    Raises:
        BackupError: It does not fit, or somebody uses the database; nothing was changed.
    """
    manifest = check_backup(folder)
    say(f"checked     {len(manifest.files)} files, {manifest.blobs or 0} artifacts")
    database: Any = sqlite_file if settings.EMBEDDED else postgresql_dump
    _refuse_misfit(manifest)
    keys = _keys_to_write(folder, manifest, without_keys=without_keys)
    _refuse_in_use(database)
    if database.holds_data() and not force:
        raise BackupError(
            "There is an installation here already: its database is not empty. --force replaces"
            " it; or name an empty one with CONTINUITY_HOME or DATABASE_URL."
        )
    try:
        create_folders(home_paths())
        _bring_blobs(folder)
        with _aside() as aside:
            _put_in_place(folder, manifest, keys, aside, database)
    except OSError as error:
        raise BackupError(f"Not restored: {error.strerror or error}.") from None
    if aside.moved:
        say(f"kept        what was there before lies in {aside.folder}")
    _finish(manifest, keys, say)


def _refuse_misfit(manifest: Manifest) -> None:
    here = "sqlite" if settings.EMBEDDED else "postgresql"
    if manifest.database != here:
        way = "Unset DATABASE_URL" if here == "postgresql" else "Set DATABASE_URL"
        raise BackupError(
            f"The backup is of a {manifest.database} database, and this is {here}. {way}, then"
            " repeat."
        )
    known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    if newer := sorted(set(manifest.migrations) - known):
        raise BackupError(
            f"The backup was made by a newer version: {newer[0]} is not known here. Install that"
            " version, then repeat."
        )


def _keys_to_write(folder: Path, manifest: Manifest, *, without_keys: bool) -> list[str]:
    """Return the keys that the home shall have; empty where it has the right ones, or does without.

    Raises:
        BackupError: The keys of the backup are not known here.
    """
    if set(manifest.key_marks) <= set(key_fingerprints()) or without_keys:
        return []
    if "keys" in manifest.files and not os.environ.get("CONTINUITY_SECRET_KEYS"):
        keys = (folder / "keys").read_text().split()
        if set(manifest.key_marks) <= set(key_fingerprints(keys)) and settings.EMBEDDED:
            return keys
    raise BackupError(
        "The keys of the backup are not those configured here. Set CONTINUITY_SECRET_KEYS to them"
        " (or put the file `keys` of the old home into this one), then repeat. With --without-keys"
        " it is restored all the same: then every token, sealed session, secret input and runner's"
        " token is lost, and the audit log cannot be verified."
    )


def _refuse_in_use(database: Any) -> None:
    if is_up():
        raise BackupError("A stack lives on this home. `manage.py down`, then repeat.")
    if not settings.EMBEDDED or database.holds_data():
        database.refuse_in_use()


def _bring_blobs(folder: Path) -> None:
    """Keep the artifacts in this installation's storage, whichever it is: those it has stay."""
    for blob in list_blobs(folder):
        with blob.open("rb") as source:
            blob_storage().put(blob_path(blob.name), source, size_bytes=blob.stat().st_size)


@dataclass
class _Aside:
    """What had to make room, and where it is."""

    folder: Path
    moved: list[tuple[Path, Path]] = field(default_factory=list)

    def move(self, path: Path) -> None:
        """Move a file or folder out of the way; what is not there needs no way."""
        if not path.exists():
            return
        self.folder.mkdir(mode=0o700, exist_ok=True)
        place = self.folder / path.name
        path.rename(place)
        self.moved.append((path, place))

    def put_back(self) -> None:
        """Undo all of it: what stands in its place goes aside in turn."""
        for path, place in reversed(self.moved):
            if path.exists():
                path.rename(place.with_name(f"failed-{path.name}"))
            place.rename(path)


@contextmanager
def _aside() -> Iterator[_Aside]:
    home = Path(settings.CONTINUITY_HOME)
    aside = _Aside(home / time.strftime("replaced-%Y%m%dT%H%M%S", time.gmtime()))
    try:
        yield aside
    except BaseException:
        aside.put_back()
        raise


def _put_in_place(
    folder: Path, manifest: Manifest, keys: list[str], aside: _Aside, database: Any
) -> None:
    home = Path(settings.CONTINUITY_HOME)
    for name in (*FOLDERS, *(("keys",) if keys else ())):
        aside.move(home / name)
    if settings.EMBEDDED:
        for path in database.own_files():
            aside.move(path)
    for path in manifest.files:
        if path.partition("/")[0] in FOLDERS or (path == "keys" and keys):
            with (folder / path).open("rb") as source:
                write_file(source, home / path)
    database.load(folder)  # last: before it, an end of the process leaves what was there, aside


def _finish(manifest: Manifest, keys: list[str], say: Say) -> None:
    """Bring the schema up to date where that is ours to do, and tell the audit log."""
    if keys:
        settings.CONTINUITY_SECRET_KEYS = keys  # of this process, which began under others
    try:
        if settings.EMBEDDED:
            prepare_home()
        elif unapplied_migrations():
            say("next        run `manage.py migrate`: the backup is of an older version")
            return
        told = {"madeAt": manifest.made_at}
        record(AuditEvent("installation.restored", "command", "installation", "", "", "", told))
    except DatabaseError as error:
        raise BackupError(f"It is restored, but its database does not answer: {error}.") from None
