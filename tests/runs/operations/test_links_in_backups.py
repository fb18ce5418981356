"""A backup has files and folders alone: a link or a special file in it is refused before anything
is read from it or changed.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from artifacts.storage.blobs import blob_path
from runs.operations.backups.manifest import Manifest, write_manifest
from runs.operations.backups.restore import _moved_aside, _replace
from runs.operations.backups.verify import check_backup
from runs.operations.home.errors import BackupError

HEAD, BLOB = b"{}", b"some bytes"


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Return a backup with a file of the folder audit and an artifact."""
    folder = tmp_path / "backup"
    blob = folder / "artifacts" / blob_path(hashlib.sha256(BLOB).hexdigest())
    for path, data in ((folder / "audit/head.json", HEAD), (blob, BLOB)):
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    files = {"audit/head.json": (hashlib.sha256(HEAD).hexdigest(), len(HEAD))}
    write_manifest(folder, Manifest(1, "sqlite", [], [], files, 1, len(BLOB), 0))
    return folder


def test_a_backup_of_files_and_folders_is_accepted(backup: Path) -> None:
    assert check_backup(backup).blobs == 1


def test_a_manifest_that_is_nested_too_deeply_is_refused(backup: Path) -> None:
    (backup / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(BackupError, match="cannot be read"):
        check_backup(backup)


def test_a_backup_that_its_user_names_by_a_link_is_accepted(backup: Path) -> None:
    (backup.parent / "latest").symlink_to(backup)
    assert check_backup(backup.parent / "latest").blobs == 1


@pytest.mark.parametrize("name", ["audit", "artifacts", "audit/head.json", "manifest.json"])
def test_a_link_in_place_of_a_file_or_folder_is_refused(backup: Path, name: str) -> None:
    elsewhere = backup.parent / "elsewhere"
    (backup / name).rename(elsewhere)
    (backup / name).symlink_to(elsewhere)
    with pytest.raises(BackupError, match=f"{name} is a link"):
        check_backup(backup)


def test_a_link_that_the_manifest_does_not_name_is_refused(backup: Path) -> None:
    (backup / "audit/loop").symlink_to(backup)
    with pytest.raises(BackupError, match="audit/loop is a link"):
        check_backup(backup)


def test_a_special_file_is_refused_and_not_opened(backup: Path) -> None:
    os.mkfifo(backup / "audit/pipe")
    with pytest.raises(BackupError, match="audit/pipe is no regular file"):
        check_backup(backup)


def test_a_file_that_changes_after_the_check_is_not_restored(backup: Path, settings: Any) -> None:
    settings.CONTINUITY_HOME = backup.parent / "home"
    manifest = check_backup(backup)
    (backup / "audit/head.json").write_bytes(b"[]")
    database: Any = SimpleNamespace(own_files=list, load=lambda folder: None)
    with pytest.raises(BackupError, match="has changed since it was checked"), _moved_aside() as to:
        _replace(backup, manifest, [], to, database)
