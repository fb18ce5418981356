"""A backup taken while the installation runs is complete, on both databases, and readable by its
owner only."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts.models import Artifact
from artifacts.storage.blobs import blob_path
from runs.installation.backups.create import create_backup, has_artifact_files
from runs.installation.backups.manifest import check_backup, list_blobs, read_manifest
from tests.support.installations import (
    ON_POSTGRESQL,
    SUBMIT,
    WRITE,
    Installation,
    copy_of,
    keys_of,
)
from tests.support.s3_bucket import Bucket

pytest_plugins = ["tests.support.installation_fixtures", "tests.support.s3_fixtures"]
# Each command is a process of its own: a dozen of them take some time on a busy machine.
pytestmark = pytest.mark.timeout(600)


def test_a_backup_taken_during_writes_is_complete(
    source_installation: Installation,
    tmp_path: Path,
    servers: dict[str, str],
    empty_installation: Installation,
) -> None:
    on_and_on = SUBMIT.partition("run = submit_run")[0] + WRITE
    with copy_of(source_installation, tmp_path, servers, "busy") as busy:
        writing = busy.home.start("shell", "--no-imports", "-c", on_and_on)
        writing.until("WRITES")
        busy.run("backup", str(tmp_path / "kept"), "--with-keys")
        assert writing.process.poll() is None, writing.said
    empty_installation.run("restore", str(tmp_path / "kept"))
    assert "is intact" in empty_installation.run("verify_audit")
    assert empty_installation.run("recount_runs").startswith("0 ")


def test_a_backup_is_readable_by_its_owner_only_and_holds_no_key_by_default(
    source_installation: Installation, backup_without_keys: Path
) -> None:
    assert stat.S_IMODE(backup_without_keys.stat().st_mode) == 0o700
    for path in filter(Path.is_file, backup_without_keys.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert keys_of(source_installation).encode() not in path.read_bytes(), path
    manifest = json.loads((backup_without_keys / "manifest.json").read_text())
    assert manifest["database"] == ("postgresql" if ON_POSTGRESQL else "sqlite")
    assert "audit/head.json" in manifest["files"]


def test_artifacts_can_be_excluded(
    source_installation: Installation, empty_installation: Installation, tmp_path: Path
) -> None:
    folder = tmp_path / "k"
    assert "left out" in source_installation.run(
        "backup", str(folder), "--without-artifacts", "--with-keys"
    )
    assert not (folder / "artifacts").exists()
    empty_installation.run("restore", str(folder))


def test_artifacts_in_a_bucket_are_excluded_unless_requested(
    bucket: Bucket, make_artifact: Callable[..., str], tmp_path: Path
) -> None:
    make_artifact(b"kept in the bucket")
    lost = make_artifact(b"lost from it")
    assert has_artifact_files() is False
    bucket.storage.delete(blob_path(Artifact.objects.get(id=lost).sha256))
    said: list[str] = []
    folder = tmp_path / "kept"
    made = create_backup(folder, with_keys=False, with_artifacts=True, report=said.append)
    assert (made.blobs, made.blob_bytes, made.missing) == (1, 18, 1)
    assert [blob.read_bytes() for blob in list_blobs(folder)] == [b"kept in the bucket"]
    assert check_backup(folder) == read_manifest(folder)


@pytest.mark.parametrize("place", ["inside", "taken", "file"])
def test_an_unusable_destination_is_rejected(
    source_installation: Installation, tmp_path: Path, place: str
) -> None:
    folder = tmp_path / "there"
    if place == "inside":
        folder = source_installation.home.at.home / "backups"
    elif place == "taken":
        folder.mkdir()
        (folder / "letter.txt").write_text("mine")
    else:
        folder.write_text("mine")
    source_installation.refused("backup", str(folder))
    assert not folder.is_dir() or (folder / "letter.txt").read_text() == "mine"


@pytest.mark.skipif(ON_POSTGRESQL, reason="a file's")
def test_a_damaged_database_creates_no_backup(
    source_installation: Installation, tmp_path: Path, servers: dict[str, str]
) -> None:
    with copy_of(source_installation, tmp_path, servers, "damaged") as place:
        file = place.home.at.home / "continuity.sqlite3"
        whole = file.read_bytes()
        page = whole.index(b"test_stepwise") // 4096 * 4096
        file.write_bytes(whole[:page] + os.urandom(4096) + whole[page + 4096 :])
        place.refused("backup", str(tmp_path / "kept"))
        assert not (tmp_path / "kept").exists()


@pytest.mark.skipif(not ON_POSTGRESQL, reason="pg_dump's")
def test_a_missing_pg_dump_is_reported_with_the_remedy(
    source_installation: Installation, tmp_path: Path
) -> None:
    said = source_installation.refused("backup", str(tmp_path / "kept"), PATH="/nonexistent")
    assert "postgresql-client" in said
    assert not (tmp_path / "kept").exists()


@pytest.mark.skipif(not ON_POSTGRESQL, reason="pg_dump's")
def test_no_password_is_on_a_command_line(
    source_installation: Installation, tmp_path: Path
) -> None:
    spy = tmp_path / "bin" / "pg_dump"
    spy.parent.mkdir()
    spy.write_text(
        '#!/bin/sh\necho "$@" "as $PGPASSWORD" >&2\necho "error: seen: $*" >&2\nexit 1\n'
    )
    spy.chmod(0o755)
    url = source_installation.home.env["DATABASE_URL"].replace("postgres@", "postgres:hunter2@")
    said = source_installation.refused(
        "backup",
        str(tmp_path / "kept"),
        DATABASE_URL=url,
        PATH=f"{spy.parent}:{os.environ['PATH']}",
    )
    assert "hunter2" not in said
    assert "--format=custom" in said
    assert subprocess.run(["grep", "-rq", "hunter2", tmp_path], check=False).returncode == 1
