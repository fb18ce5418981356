"""Making a backup, while the installation goes on."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder

from artifacts.models import Artifact
from artifacts.storage.blobs import blob_path, open_blob
from decisions.audit.record import AuditEvent, record
from decisions.infra.clock import now_ms
from decisions.security.keys import key_fingerprints
from runs.installation.backups import postgresql_dump, sqlite_file
from runs.installation.backups.manifest import BLOBS, Manifest, measure, write_file, write_manifest
from runs.installation.home.errors import BackupError

Say = Callable[[str], None]
Files = dict[str, tuple[str, int]]
FOLDERS = ("audit", "workspaces")  # of the home: what is there nowhere else


def has_artifact_files() -> bool:
    """Tell whether artifacts are files, and not in a bucket that has backups of its own."""
    return isinstance(storages["artifacts"], FileSystemStorage)


def create_backup(folder: Path, *, with_keys: bool, with_artifacts: bool, say: Say) -> Manifest:
    """Write a backup into a folder that is empty or made here; an audit row tells of it.

    The order matters: checkpoints of the audit chain before the database, so that none is newer
    than the chain; artifacts after it, so that none that it names was not yet there.

    Raises:
        BackupError: It cannot be made; nothing of it is left.
    """
    files: Files = {}
    with _room_for(folder):
        told = {"withKeys": with_keys, "withArtifacts": with_artifacts}
        record(AuditEvent("installation.backed_up", "command", "installation", "", "", "", told))
        files.update(_copy_folder("audit", folder))
        migrations = sorted(
            f"{a}.{n}" for a, n in MigrationRecorder(connection).applied_migrations()
        )
        dumping = sqlite_file if connection.vendor == "sqlite" else postgresql_dump
        name = dumping.dump(folder)
        files[name] = measure(folder, name)
        say(f"database    {name}, {files[name][1]} bytes")
        files.update(_copy_folder("workspaces", folder))
        if with_keys:
            keys = "\n".join(settings.CONTINUITY_SECRET_KEYS) + "\n"
            files["keys"] = write_file(io.BytesIO(keys.encode()), folder / "keys")
        blobs = _copy_blobs(folder) if with_artifacts else (None, 0, 0)
        manifest = Manifest(
            now_ms(), connection.vendor, migrations, key_fingerprints(), files, *blobs
        )
        write_manifest(folder, manifest)
    return manifest


@contextmanager
def _room_for(folder: Path) -> Iterator[None]:
    """Have an empty folder; what is in it after a failure goes."""
    was_there = folder.exists()
    try:
        _have_empty(folder)
        try:
            yield
        except BaseException:
            _empty(folder)
            if not was_there:
                folder.rmdir()
            raise
    except OSError as error:
        raise BackupError(f"The backup was not made: {error.strerror or error}.") from None
    except DatabaseError as error:
        reason = str(error).strip().splitlines()[0]
        raise BackupError(f"The database does not answer ({reason}).") from None


def _have_empty(folder: Path) -> None:
    if folder.resolve().is_relative_to(Path(settings.CONTINUITY_HOME).resolve()):
        raise BackupError(f"{folder} lies in CONTINUITY_HOME, and would be lost with it.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise BackupError(f"{folder} is not empty. Name a folder that is, or a new one.")
    folder.chmod(0o700)


def _empty(folder: Path) -> None:
    for left in folder.iterdir():
        if left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()


def _copy_folder(name: str, folder: Path) -> Files:
    """Copy the plain files of a folder of the home; one that goes meanwhile is left out."""
    home = Path(settings.CONTINUITY_HOME)
    files: Files = {}
    for path in sorted((home / name).rglob("*")):
        if path.is_symlink() or not path.is_file() or path.name == "lock":
            continue
        place = path.relative_to(home).as_posix()
        try:
            source = path.open("rb")
        except FileNotFoundError:
            continue
        with source:
            files[place] = write_file(source, folder / place)
    return files


def _copy_blobs(folder: Path) -> tuple[int, int, int]:
    """Copy the bytes of every artifact that has not expired; return how many, how large together,
    and how many were lost before.
    """
    number = size_bytes = missing = 0
    kept = Artifact.objects.filter(expired_at__isnull=True).order_by("sha256")
    for sha256, size in kept.values_list("sha256", "size_bytes").distinct().iterator():
        target = folder / BLOBS / blob_path(sha256)
        source = open_blob(sha256, size_bytes=size)
        if source is not None:
            with source:
                found = write_file(source, target)
            if found == (sha256, size):
                number, size_bytes = number + 1, size_bytes + size
                continue
            target.unlink()
        missing += 1
    return number, size_bytes, missing
