"""Restore a backup: check everything first, then replace the content of the home and the database,
and undo that if a step fails.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import Error
from django.db.migrations.loader import MigrationLoader

from artifacts.storage.blobs import blob_path, blob_storage
from decisions.audit.record import AuditEvent, record
from decisions.audit.sealer import Sealer
from decisions.authorization.confirmations import expire_unused_approvals
from decisions.foundation.security.keys import key_fingerprints
from runs.operations.backups import postgresql_dump, sqlite_file
from runs.operations.backups.create import FOLDERS, ReportLine
from runs.operations.backups.manifest import Manifest, list_blobs, write_file
from runs.operations.backups.verify import check_backup
from runs.operations.home.errors import BackupError
from runs.operations.home.paths import home_paths
from runs.operations.home.prepare import create_folders, prepare_home, unapplied_migrations
from runs.operations.home.state import is_up


def restore_backup(folder: Path, *, force: bool, without_keys: bool, report: ReportLine) -> None:
    """Replace the content of this home and this database with a backup.

    Args:
        force: replace existing content; files and the embedded database are moved aside.
        without_keys: continue without the secret keys of the backup.

    Raises:
        BackupError: The backup does not fit, or the database is in use; nothing was changed.
    """
    manifest = check_backup(folder)
    report(f"checked     {len(manifest.files)} files, {manifest.blobs or 0} artifacts")
    database: Any = sqlite_file if settings.EMBEDDED else postgresql_dump
    _refuse_misfit(manifest)
    keys = _keys_to_write(folder, manifest, without_keys=without_keys)
    _refuse_in_use(database)
    if database.holds_data() and not force:
        raise BackupError(
            "There is an installation already: its database is not empty. --force replaces it; or"
            " name an empty one with CONTINUITY_HOME or DATABASE_URL."
        )
    try:
        create_folders(home_paths())
        _copy_blobs(folder)
        with _moved_aside() as aside:
            _replace(folder, manifest, keys, aside, database)
    except OSError as error:
        raise BackupError(f"Not restored: {error.strerror or error}.") from None
    if aside.moved:
        report(f"kept        the previous content is in {aside.folder}")
    _finish(manifest, keys, report)


def _refuse_misfit(manifest: Manifest) -> None:
    here = "sqlite" if settings.EMBEDDED else "postgresql"
    if manifest.database != here:
        way = "Unset DATABASE_URL" if here == "postgresql" else "Set DATABASE_URL"
        raise BackupError(
            f"The backup is of a {manifest.database} database, but this one is {here}. {way}, then"
            " repeat."
        )
    known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    if newer := sorted(set(manifest.migrations) - known):
        raise BackupError(
            f"The backup was created by a newer version: {newer[0]} is unknown here. Install that"
            " version, then repeat."
        )


def _keys_to_write(folder: Path, manifest: Manifest, *, without_keys: bool) -> list[str]:
    """Return the keys to write into the home; empty if it has them already, or goes without.

    Raises:
        BackupError: The keys of the backup are neither configured here nor in the backup.
    """
    if set(manifest.key_marks) <= set(key_fingerprints()) or without_keys:
        return []
    if "keys" in manifest.files and not os.environ.get("CONTINUITY_SECRET_KEYS"):
        keys = (folder / "keys").read_text().split()
        if set(manifest.key_marks) <= set(key_fingerprints(keys)) and settings.EMBEDDED:
            return keys
    raise BackupError(
        "The backup's keys are not configured here. Set CONTINUITY_SECRET_KEYS to them (or copy the"
        " file `keys` of the old home into this one), then repeat. --without-keys restores without"
        " them: then every token, saved session, secret input and runner's token is lost, and the"
        " audit log cannot be verified."
    )


def _refuse_in_use(database: Any) -> None:
    if is_up():
        raise BackupError("The stack of this home is up. Run `manage.py down`, then repeat.")
    if not settings.EMBEDDED or database.holds_data():
        database.refuse_in_use()


def _copy_blobs(folder: Path) -> None:
    """Copy the artifacts into this installation's storage, which may be another than the backup's.
    Existing artifacts stay.
    """
    for blob in list_blobs(folder):
        with blob.open("rb") as source:
            blob_storage().put(blob_path(blob.name), source, size_bytes=blob.stat().st_size)


@dataclass
class _Aside:
    """The previous files and folders, moved into `folder`; `moved` has (original, new) paths."""

    folder: Path
    moved: list[tuple[Path, Path]] = field(default_factory=list)

    def move(self, path: Path) -> None:
        """Move a file or folder aside, if it exists."""
        if not path.exists():
            return
        self.folder.mkdir(mode=0o700, exist_ok=True)
        target = self.folder / path.name
        path.rename(target)
        self.moved.append((path, target))

    def put_back(self) -> None:
        """Move everything back; what has replaced it is moved aside as `failed-NAME`."""
        for path, target in reversed(self.moved):
            if path.exists():
                path.rename(target.with_name(f"failed-{path.name}"))
            target.rename(path)


@contextmanager
def _moved_aside() -> Iterator[_Aside]:
    """Yield a folder to move previous files to; if the block fails, move them back."""
    home = Path(settings.CONTINUITY_HOME)
    aside = _Aside(home / time.strftime("replaced-%Y%m%dT%H%M%S", time.gmtime()))
    try:
        yield aside
    except BaseException:
        aside.put_back()
        raise


def _replace(
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
                if write_file(source, home / path) != manifest.files[path]:
                    raise BackupError(f"{folder / path} has changed since it was checked.")
    database.load(folder)  # last: until then the previous database is untouched, or moved aside


def _end_approvals_and_sessions(report: ReportLine) -> dict[str, int]:
    """Expire unused approvals, whose calls may have been made after the backup, and end the admin
    sessions, whose users may have signed out since.
    """
    approvals = expire_unused_approvals()
    sessions, _ = Session.objects.all().delete()
    report(f"expired     {approvals} unused approvals; ended {sessions} admin sessions")
    return {"approvalsExpired": approvals, "sessionsEnded": sessions}


def _finish(manifest: Manifest, keys: list[str], report: ReportLine) -> None:
    """Migrate the embedded database, end what the backup must not bring back, and record the
    restore in the audit log, and seal its rows.
    """
    if keys:
        settings.CONTINUITY_SECRET_KEYS = keys  # this process started with others
    try:
        if settings.EMBEDDED:
            prepare_home()
        ended = _end_approvals_and_sessions(report)
        made_at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(manifest.made_at / 1000))
        report(
            f"undone      what was revoked or changed after {made_at}: tokens, users, policy rules"
        )
        if not settings.EMBEDDED and unapplied_migrations():
            report("next        run `manage.py migrate`: the backup is of an older version")
            return
        details = {"madeAt": manifest.made_at, **ended}
        record(AuditEvent("installation.restored", "command", "installation", "", "", "", details))
        if set(manifest.key_marks) <= set(key_fingerprints()):
            Sealer().seal_all()  # what was committed just before the backup, and this row
    except Error as error:
        raise BackupError(f"Restored, but the database does not answer: {error}.") from None
