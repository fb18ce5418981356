"""The content of a backup folder, and its manifest.

manifest.json       written last: a folder without it is not a backup
database.sqlite3    or database.dump (of pg_dump)
audit/              checkpoints of the audit chain, not newer than the database
workspaces/         snapshots of files that workspace tools changed
artifacts/          aa/bb/SHA-256, each file named by the hash of its content
keys                only with --with-keys
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from runs.operations.home.errors import BackupError

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
        migrations: applied to the database, as app.name.
        key_marks: fingerprints of the secret keys.
        files: SHA-256 and size in bytes by path, of all files but the artifacts.
        blobs, blob_bytes: number and total size of the artifacts; blobs is None if left out.
        missing: the number of artifacts whose content was already lost.
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
    """Write the manifest atomically, which makes the folder a backup."""
    draft = folder / f".{NAME}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(manifest), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / NAME)


def read_manifest(folder: Path) -> Manifest:
    """Return a backup's manifest.

    Raises:
        BackupError: There is none, or this version cannot read it.
    """
    try:
        stored = json.loads((folder / NAME).read_text())
    except FileNotFoundError:
        raise BackupError(f"{folder} is not a backup: it has no {NAME}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BackupError(f"{folder / NAME} cannot be read: {error}.") from None
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise BackupError(f"{folder} was created by another version of `manage.py backup`.")
    try:
        manifest = Manifest(**stored)
        files = {
            _inside(path): (str(sha), int(size)) for path, (sha, size) in stored["files"].items()
        }
    except (TypeError, ValueError, AttributeError):
        raise BackupError(f"{folder / NAME} is not a manifest of `manage.py backup`.") from None
    return Manifest(**{**asdict(manifest), "files": files})


def _inside(path: str) -> str:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        raise ValueError(path)
    return path


def list_blobs(folder: Path) -> Iterator[Path]:
    """Yield the files of a backup's artifacts."""
    for parent, _, names in os.walk(folder / BLOBS):
        yield from (Path(parent) / name for name in sorted(names))


def measured(path: Path) -> tuple[str, int] | None:
    """Return the SHA-256 and size in bytes of a regular file; None for any other."""
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size


def write_file(source: IO[Any], target: Path) -> tuple[str, int]:
    """Write a file that only its owner can read; return its SHA-256 and size in bytes."""
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
    """Return the SHA-256 and size in bytes of a file in the folder."""
    found = measured(folder / path)
    if found is None:
        raise BackupError(f"{folder / path} was not written.")
    return found
