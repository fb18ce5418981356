"""What a backup's folder holds.

manifest.json       written last: a folder without one is no backup
database.sqlite3    or database.dump (of pg_dump)
audit/              checkpoints of the audit chain, no newer than the database
workspaces/         snapshots of files that workspace tools changed
artifacts/          aa/bb/SHA-256, each file named by its content
keys                only where it was asked for
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from artifacts.storage.blobs import blob_path
from runs.installation.home.errors import BackupError

FORMAT = 1
NAME = "manifest.json"
BLOBS = "artifacts"
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was backed up, and when.

    Attributes:
        made_at: Unix milliseconds.
        database: `sqlite` or `postgresql`.
        migrations: all that the database had seen, as app.name.
        key_marks: tell whether the keys are the same ones.
        files: SHA-256 and bytes of each file but artifacts, by its path.
        blobs, blob_bytes: of the artifacts that are in it; None: they are left out.
        missing: artifacts whose bytes were lost before.
    """

    made_at: int
    database: str
    migrations: list[str]
    key_marks: list[str]
    files: dict[str, tuple[str, int]]
    blobs: int | None
    blob_bytes: int
    missing: int
    format: int = FORMAT


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make the folder a backup: whole or not at all."""
    draft = folder / f".{NAME}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(manifest), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / NAME)


def read_manifest(folder: Path) -> Manifest:
    """Return a backup's manifest.

    Raises:
        BackupError: There is none, or none that this version reads.
    """
    try:
        told = json.loads((folder / NAME).read_text())
    except FileNotFoundError:
        raise BackupError(f"{folder} is no backup: it has no {NAME}.") from None
    except (OSError, ValueError) as error:
        raise BackupError(f"{folder / NAME} cannot be read: {error}.") from None
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise BackupError(f"{folder} was made by another version of `manage.py backup`.")
    try:
        manifest = Manifest(**told)
        files = {
            _inside(path): (str(sha), int(size)) for path, (sha, size) in told["files"].items()
        }
    except (TypeError, ValueError, AttributeError):
        raise BackupError(f"{folder / NAME} is not as `manage.py backup` writes it.") from None
    return Manifest(**{**asdict(manifest), "files": files})


def _inside(path: str) -> str:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        raise ValueError(path)
    return path


def check_backup(folder: Path) -> Manifest:
    """Read every byte of a backup and return its manifest.

    Raises:
        BackupError: A file is missing or another one; the first is named.
    """
    manifest = read_manifest(folder)
    for path, wanted in manifest.files.items():
        if _measured(folder / path) != wanted:
            raise BackupError(f"{folder / path} is missing or not as it was written.")
    number = size_bytes = 0
    for blob in list_blobs(folder):
        sha256, size = _measured(blob) or ("", 0)
        if sha256 != blob.name or blob != folder / BLOBS / blob_path(sha256):
            raise BackupError(f"{blob} is not as it was written.")
        number, size_bytes = number + 1, size_bytes + size
    if (number, size_bytes) != (manifest.blobs or 0, manifest.blob_bytes):
        raise BackupError(
            f"{folder / BLOBS} holds {number} files of {size_bytes} bytes in all, not"
            f" {manifest.blobs or 0} of {manifest.blob_bytes}."
        )
    return manifest


def list_blobs(folder: Path) -> Iterator[Path]:
    """Yield the files of the artifacts."""
    for place, _, names in os.walk(folder / BLOBS):
        yield from (Path(place) / name for name in sorted(names))


def _measured(path: Path) -> tuple[str, int] | None:
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size


def write_file(source: IO[Any], target: Path) -> tuple[str, int]:
    """Write a file of a backup, for its owner alone; return its SHA-256 and bytes."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    hashed, size_bytes = hashlib.sha256(), 0
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        while chunk := source.read(CHUNK):
            file.write(chunk)
            hashed.update(chunk)
            size_bytes += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    return hashed.hexdigest(), size_bytes


def measure(folder: Path, path: str) -> tuple[str, int]:
    """Return what the manifest tells of a file that is in the folder."""
    measured = _measured(folder / path)
    if measured is None:
        raise BackupError(f"{folder / path} was not written.")
    return measured
