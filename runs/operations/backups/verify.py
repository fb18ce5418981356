"""Verify a backup before it is restored: its files, their hashes, and that it has no links."""

from __future__ import annotations

import os
from pathlib import Path

from artifacts.storage.blobs import blob_path
from runs.operations.backups.manifest import (
    BLOBS,
    Manifest,
    list_blobs,
    measured,
    read_manifest,
)
from runs.operations.home.errors import BackupError


def check_backup(folder: Path) -> Manifest:
    """Verify the hash of every file of a backup, and return its manifest.

    Raises:
        BackupError: A file is missing, has changed, or is a link or a special file; the message
            names the first.
    """
    _refuse_links(folder)
    manifest = read_manifest(folder)
    for path, wanted in manifest.files.items():
        if measured(folder / path) != wanted:
            raise BackupError(f"{folder / path} is missing or has changed since the backup.")
    number = size_bytes = 0
    for blob in list_blobs(folder):
        sha256, size = measured(blob) or ("", 0)
        if sha256 != blob.name or blob != folder / BLOBS / blob_path(sha256):
            raise BackupError(f"{blob} has changed since the backup.")
        number, size_bytes = number + 1, size_bytes + size
    if (number, size_bytes) != (manifest.blobs or 0, manifest.blob_bytes):
        raise BackupError(
            f"{folder / BLOBS} has {number} files of {size_bytes} bytes in total, not"
            f" {manifest.blobs or 0} of {manifest.blob_bytes}."
        )
    return manifest


def _refuse_links(folder: Path) -> None:
    """Refuse a backup that has other than folders and regular files, before anything is opened.

    Links could lead a restore, which root may run, to files that are not of the backup.
    """
    for parent, folders, names in os.walk(folder):
        for path in (Path(parent) / name for name in (*folders, *names)):
            if path.is_symlink():
                raise BackupError(f"{path} is a link; a backup has none. Nothing was changed.")
            if not (path.is_dir() or path.is_file()):
                raise BackupError(f"{path} is no regular file. Nothing was changed.")
