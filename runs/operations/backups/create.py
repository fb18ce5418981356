"""Create a backup of a running installation."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages
from django.db import Error, connection
from django.db.migrations.recorder import MigrationRecorder

from artifacts.models import Artifact
from artifacts.storage.blobs import blob_path, open_blob
from decisions.audit.record import AuditEvent, record
from decisions.foundation.infra.clock import now_ms
from decisions.foundation.security.keys import key_fingerprints
from runs.operations.backups import postgresql_dump, sqlite_file
from runs.operations.backups.manifest import BLOBS, Manifest, measure, write_file, write_manifest
from runs.operations.home.errors import BackupError

ReportLine = Callable[[str], None]
Files = dict[str, tuple[str, int]]
FOLDERS = ("audit", "workspaces")  # of the home; their files are stored nowhere else


def has_artifact_files() -> bool:
    """Return whether artifacts are stored as files rather than in a bucket."""
    return isinstance(storages["artifacts"], FileSystemStorage)


def create_backup(
    folder: Path, *, with_keys: bool, with_artifacts: bool, report: ReportLine
) -> Manifest:
    """Write a backup into a new or empty folder, and record it in the audit log.

    The order matters. Audit checkpoints come before the database, so that none is newer than the
    chain in it; artifacts come after the database, so that all that it names exist.

    Raises:
        BackupError: The backup cannot be created; nothing of it is left.
    """
    files: Files = {}
    with _empty_folder(folder):
        details = {"withKeys": with_keys, "withArtifacts": with_artifacts}
        record(AuditEvent("installation.backed_up", "command", "installation", "", "", "", details))
        files.update(_copy_folder("audit", folder))
        migrations = sorted(
            f"{a}.{n}" for a, n in MigrationRecorder(connection).applied_migrations()
        )
        database = sqlite_file if connection.vendor == "sqlite" else postgresql_dump
        name = database.dump(folder)
        files[name] = measure(folder, name)
        report(f"database    {name}, {files[name][1]} bytes")
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
def _empty_folder(folder: Path) -> Iterator[None]:
    """Create the folder or check that it is empty; if the block fails, remove what it wrote."""
    existed = folder.exists()
    try:
        _create_empty(folder)
        try:
            yield
        except BaseException:
            _remove_content(folder)
            if not existed:
                folder.rmdir()
            raise
    except OSError as error:
        raise BackupError(f"The backup was not created: {error.strerror or error}.") from None
    except Error as error:
        reason = str(error).strip().splitlines()[0]
        raise BackupError(f"The database does not answer ({reason}).") from None


def _create_empty(folder: Path) -> None:
    if folder.resolve().is_relative_to(Path(settings.CONTINUITY_HOME).resolve()):
        raise BackupError(f"{folder} is inside CONTINUITY_HOME. Name a folder outside of it.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise BackupError(f"{folder} is not empty. Name an empty or a new folder.")
    folder.chmod(0o700)


def _remove_content(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _copy_folder(name: str, folder: Path) -> Files:
    """Copy the regular files of a folder in the home; skip those deleted in the meantime."""
    home = Path(settings.CONTINUITY_HOME)
    files: Files = {}
    for path in sorted((home / name).rglob("*")):
        if path.is_symlink() or not path.is_file() or path.name == "lock":
            continue
        name_in_home = path.relative_to(home).as_posix()
        try:
            source = path.open("rb")
        except FileNotFoundError:
            continue
        with source:
            files[name_in_home] = write_file(source, folder / name_in_home)
    return files


def _copy_blobs(folder: Path) -> tuple[int, int, int]:
    """Copy the content of every artifact that has not expired.

    Returns:
        The number of files, their total bytes, and the number whose content was already lost.
    """
    number = size_bytes = missing = 0
    stored = Artifact.objects.filter(expired_at__isnull=True).order_by("sha256")
    for sha256, size in stored.values_list("sha256", "size_bytes").distinct().iterator():
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
