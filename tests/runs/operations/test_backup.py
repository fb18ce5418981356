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
from django.db import connection

from artifacts.models import Artifact
from artifacts.storage.blobs import blob_path
from runs.operations.backups import postgresql_dump
from runs.operations.backups.create import create_backup, has_artifact_files
from runs.operations.backups.manifest import list_blobs, read_manifest
from runs.operations.backups.verify import check_backup
from runs.operations.home.errors import BackupError
from tests.support.installation.installations import (
    ON_POSTGRESQL,
    SUBMIT,
    WRITE,
    Installation,
    copy_of,
    keys_of,
)
from tests.support.rest.s3_bucket import Bucket

# Each command is a process of its own: a dozen of them take some time on a busy machine.
pytestmark = pytest.mark.timeout(600)


@pytest.mark.slow
def test_a_backup_taken_during_writes_is_complete(
    source_installation: Installation,
    tmp_path: Path,
    servers: dict[str, str],
    empty_installation: Installation,
) -> None:
    write_repeatedly = SUBMIT.partition("run = submit_run")[0] + WRITE
    with copy_of(source_installation, tmp_path, servers, "busy") as busy:
        writer = busy.home.start("shell", "--no-imports", "-c", write_repeatedly)
        writer.wait_for_line("WRITES")
        busy.run("backup", str(tmp_path / "backup"), "--with-keys")
        assert writer.process.poll() is None, writer.output
    empty_installation.run("restore", str(tmp_path / "backup"))
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


@pytest.mark.slow
def test_artifacts_can_be_excluded(
    source_installation: Installation, empty_installation: Installation, tmp_path: Path
) -> None:
    folder = tmp_path / "k"
    assert "left out" in source_installation.run(
        "backup", str(folder), "--without-artifacts", "--with-keys"
    )
    assert not (folder / "artifacts").exists()
    empty_installation.run("restore", str(folder))


@pytest.mark.slow
def test_artifacts_in_a_bucket_are_excluded_unless_requested(
    bucket: Bucket, make_artifact: Callable[..., str], tmp_path: Path
) -> None:
    make_artifact(b"kept in the bucket")
    lost = make_artifact(b"lost from it")
    assert has_artifact_files() is False
    bucket.storage.delete(blob_path(Artifact.objects.get(id=lost).sha256))
    messages: list[str] = []
    folder = tmp_path / "backup"
    backup = create_backup(folder, with_keys=False, with_artifacts=True, report=messages.append)
    assert (backup.blobs, backup.blob_bytes, backup.missing) == (1, 18, 1)
    assert [blob.read_bytes() for blob in list_blobs(folder)] == [b"kept in the bucket"]
    assert check_backup(folder) == read_manifest(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "destination",
    ["inside", *(pytest.param(name, marks=pytest.mark.slow) for name in ("taken", "file"))],
)
def test_an_unusable_destination_is_rejected(
    source_installation: Installation, tmp_path: Path, destination: str
) -> None:
    folder = tmp_path / "there"
    if destination == "inside":
        folder = source_installation.home.paths.home / "backups"
    elif destination == "taken":
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
    else:
        folder.write_text("mine")
    source_installation.refused("backup", str(folder))
    assert not folder.is_dir() or (folder / "notes.txt").read_text() == "mine"


@pytest.mark.skipif(ON_POSTGRESQL, reason="SQLite only: the database is a file")
def test_a_damaged_database_creates_no_backup(
    source_installation: Installation, tmp_path: Path, servers: dict[str, str]
) -> None:
    with copy_of(source_installation, tmp_path, servers, "damaged") as damaged:
        file = damaged.home.paths.home / "continuity.sqlite3"
        content = file.read_bytes()
        page = content.index(b"test_stepwise") // 4096 * 4096
        file.write_bytes(content[:page] + os.urandom(4096) + content[page + 4096 :])
        damaged.refused("backup", str(tmp_path / "backup"))
        assert not (tmp_path / "backup").exists()


@pytest.mark.slow
@pytest.mark.skipif(not ON_POSTGRESQL, reason="PostgreSQL only: pg_dump")
def test_a_missing_pg_dump_is_reported_with_the_remedy(
    source_installation: Installation, tmp_path: Path
) -> None:
    output = source_installation.refused("backup", str(tmp_path / "backup"), PATH="/nonexistent")
    assert "postgresql-client" in output
    assert not (tmp_path / "backup").exists()


@pytest.mark.slow
@pytest.mark.skipif(not ON_POSTGRESQL, reason="PostgreSQL only: pg_dump")
def test_no_password_is_on_a_command_line(
    source_installation: Installation, tmp_path: Path
) -> None:
    fake_pg_dump = tmp_path / "bin" / "pg_dump"
    fake_pg_dump.parent.mkdir()
    fake_pg_dump.write_text(
        '#!/bin/sh\necho "$@" "as $PGPASSWORD" >&2\necho "error: seen: $*" >&2\nexit 1\n'
    )
    fake_pg_dump.chmod(0o755)
    url = source_installation.home.env["DATABASE_URL"].replace("postgres@", "postgres:hunter2@")
    output = source_installation.refused(
        "backup",
        str(tmp_path / "backup"),
        DATABASE_URL=url,
        PATH=f"{fake_pg_dump.parent}:{os.environ['PATH']}",
    )
    assert "hunter2" not in output
    assert "--format=custom" in output
    assert subprocess.run(["grep", "-rq", "hunter2", tmp_path], check=False).returncode == 1


@pytest.mark.skipif(not ON_POSTGRESQL, reason="PostgreSQL only: pg_dump")
def test_pg_dump_connects_with_the_options_of_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_pg_dump = tmp_path / "pg_dump"
    fake_pg_dump.write_text(f"#!/bin/sh\nenv > {tmp_path / 'environment'}\n")
    fake_pg_dump.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    options = {"sslmode": "require", "service": "production", "passfile": "/run/passwords"}
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
    monkeypatch.setattr(postgresql_dump, "pools_transactions", lambda: False)
    postgresql_dump.dump(tmp_path)
    environment = set((tmp_path / "environment").read_text().splitlines())
    assert environment >= {
        "PGSSLMODE=require",
        "PGSERVICE=production",
        "PGPASSFILE=/run/passwords",
    }


@pytest.mark.skipif(not ON_POSTGRESQL, reason="PostgreSQL only: pg_dump")
def test_a_password_of_the_client_key_which_pg_dump_cannot_be_given_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"sslpassword": "hunter2"})
    with pytest.raises(BackupError, match="sslpassword of DATABASE_URL") as refused:
        postgresql_dump.dump(tmp_path)
    assert "hunter2" not in str(refused.value)
