"""A backup that was made while the installation worked is the whole of it, on both databases: what
was accepted goes on, the audit log proves itself, artifacts are read back.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.own_home import OwnHome, own_home
from tests.services import postgres_server, redis_server

ON_POSTGRESQL = os.environ.get("CONTINUITY_TEST_DATABASE") == "postgresql"
KEYS = "a-key-of-the-fleet-" + "k" * 40
SUBMIT = """
from artifacts.models import Artifact
from artifacts.services import artifact_rows, keep_blob
from decisions.principals import create_token, local_principal
from decisions.sealer import Sealer
from runs.services import submit_run
from runs.slots import ensure_slots
ensure_slots()
one = local_principal()
inputs = {"do": ["ok", "ok"]}
run = submit_run(principal=one, template_id="test_stepwise", inputs=inputs,
                 options={"mode": "async"}).run_id
blob = keep_blob(b"kept bytes", name="a.txt", mime_type="text/plain", kind="file")
Artifact.objects.bulk_create(artifact_rows([(blob, None)], tenant_id=one.tenant_id,
                             workspace_id=one.workspace_id, run_id=run))
for _ in range(3):
    Sealer().seal_all()
print("MADE", run, blob.artifact_id, create_token(name="backup", trust="local"))
"""
LOOK = """
from artifacts.selectors import open_content
from decisions.principals import authenticate, local_principal
from runs.models import Run
from runs.worker import WorkerPlace
place = WorkerPlace()
place.open()
place.work()
place.close()
kept = open_content(principal=local_principal(), artifact_id="{artifact}")[1].read()
print("FOUND", Run.objects.get(id="{run}").status, kept, authenticate("{token}").trust)
"""
WRITE = """
print("WRITES", flush=True)
while True:
    submit_run(principal=one, template_id="test_stepwise", inputs=inputs, options={"mode": "async"})
"""
USE = """
import time
from runs.models import Run
print("USES", Run.objects.count(), flush=True)
time.sleep(120)
"""


class Place:
    """An installation of its own: a home, and a database and Redis where it is a fleet's."""

    def __init__(self, home: OwnHome) -> None:
        self.home = home
        self.made: list[str] = []  # a run, an artifact, a token

    def run(self, *arguments: str, **env: str) -> str:
        """Run a command that has to succeed."""
        done = self.home.run(*arguments, **env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *arguments: str, **env: str) -> str:
        """Run a command that has to refuse, in a sentence."""
        done = self.home.run(*arguments, **env)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stderr

    def python(self, code: str) -> list[str]:
        """Run code in the installation and return the words of its last line."""
        return self.run("shell", "--no-imports", "-c", code).splitlines()[-1].split()


def keys_of(place: Place) -> str:
    """Return what the installation's secrets are sealed with."""
    return KEYS if ON_POSTGRESQL else (place.home.at.home / "keys").read_text().strip()


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """What a fleet has outside; an embedded installation has nothing."""
    with ExitStack() as stack:
        if not ON_POSTGRESQL:
            yield {"REDIS_URL": stack.enter_context(redis_server()).url}
            return
        yield {
            "server": stack.enter_context(postgres_server()).url.rpartition("/")[0],
            "REDIS_URL": stack.enter_context(redis_server()).url,
        }


@contextmanager
def installation(folder: Path, servers: dict[str, str], name: str, **env: str) -> Iterator[Place]:
    """An installation without a database yet."""
    told = {"REDIS_URL": servers["REDIS_URL"], "CONTINUITY_TEMPLATE_MODULES": "tests.templates"}
    if ON_POSTGRESQL:
        with psycopg.connect(f"{servers['server']}/postgres", autocommit=True) as server:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            server.execute(f"CREATE DATABASE {name}")
        told |= {"DATABASE_URL": f"{servers['server']}/{name}", "CONTINUITY_SECRET_KEYS": KEYS}
    with own_home(folder / name, **{**told, **env}) as home:
        yield Place(home)


@contextmanager
def working(folder: Path, servers: dict[str, str], name: str) -> Iterator[Place]:
    """An installation in which something was done."""
    with installation(folder, servers, name) as place:
        place.run("migrate", "--verbosity", "0")
        place.made = place.python(SUBMIT)[1:]
        yield place


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory, servers: dict[str, str]) -> Iterator[Place]:
    """An installation to make backups of, and nothing else."""
    with working(tmp_path_factory.mktemp("old"), servers, "old") as place:
        yield place


@pytest.fixture(scope="module")
def whole(old: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of it with its keys; not to be changed."""
    folder = tmp_path_factory.mktemp("backups") / "whole"
    assert "artifacts   1, 10 bytes" in old.run("backup", str(folder), "--with-keys")
    return folder


@pytest.fixture
def kept(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(whole, tmp_path / "kept"))


@pytest.fixture(scope="module")
def keyless(old: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of it as it is made unasked; not to be changed."""
    folder = tmp_path_factory.mktemp("backups") / "keyless"
    assert "keys        not in it" in old.run("backup", str(folder))
    return folder


@pytest.fixture
def new(tmp_path: Path, servers: dict[str, str]) -> Iterator[Place]:
    """An empty one."""
    with installation(tmp_path, servers, "new") as place:
        yield place


def test_a_restored_installation_goes_on_where_the_backup_was_made(
    old: Place, new: Place, whole: Path
) -> None:
    run, artifact, token = old.made
    new.run("restore", str(whole))
    assert "is whole" in new.run("verify_audit")
    found = new.python(LOOK.format(run=run, artifact=artifact, token=token))
    assert found == ["FOUND", "succeeded", "b'kept", "bytes'", "local"]
    told_by_audit = new.run("export_audit")
    assert "installation.backed_up" in told_by_audit
    assert "installation.restored" in told_by_audit


def test_a_backup_made_under_writes_is_whole(
    tmp_path: Path, servers: dict[str, str], new: Place
) -> None:
    on_and_on = SUBMIT.partition("run = submit_run")[0] + WRITE
    with working(tmp_path, servers, "busy") as busy:
        writing = busy.home.start("shell", "--no-imports", "-c", on_and_on)
        writing.until("WRITES")
        busy.run("backup", str(tmp_path / "kept"), "--with-keys")
        assert writing.process.poll() is None, writing.said
    new.run("restore", str(tmp_path / "kept"))
    assert "is whole" in new.run("verify_audit")
    assert new.run("recount_runs").startswith("0 ")


def test_a_backup_is_for_its_owner_alone_and_holds_no_key_unasked(
    old: Place, keyless: Path
) -> None:
    assert stat.S_IMODE(keyless.stat().st_mode) == 0o700
    for path in filter(Path.is_file, keyless.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert keys_of(old).encode() not in path.read_bytes(), path
    manifest = json.loads((keyless / "manifest.json").read_text())
    assert manifest["database"] == ("postgresql" if ON_POSTGRESQL else "sqlite")
    assert "audit/head.json" in manifest["files"]


def test_artifacts_can_be_left_out(old: Place, new: Place, tmp_path: Path) -> None:
    folder = tmp_path / "k"
    assert "left out" in old.run("backup", str(folder), "--without-artifacts", "--with-keys")
    assert not (folder / "artifacts").exists()
    new.run("restore", str(folder))


def test_what_holds_something_already_is_replaced_only_when_asked(
    tmp_path: Path, servers: dict[str, str], whole: Path
) -> None:
    count = "from runs.models import Run; print(*Run.objects.values_list('id', flat=True))"
    with working(tmp_path, servers, "other") as other:
        mine = other.made[0]
        assert "--force" in other.refused("restore", str(whole))
        assert other.python(count) == [mine]
        other.run("restore", str(whole), "--force")
        assert mine not in other.python(count)
        assert "is whole" in other.run("verify_audit")
        (aside,) = other.home.at.home.glob("replaced-*")
        assert (aside / "audit" / "head.json").exists()
        assert (aside / "continuity.sqlite3").exists() is not ON_POSTGRESQL


def test_a_restore_that_fails_on_its_way_leaves_what_was_there(
    tmp_path: Path, servers: dict[str, str], kept: Path
) -> None:
    database = next(kept.glob("database.*"))
    database.write_bytes(b"no database" * 1000)
    manifest = json.loads((kept / "manifest.json").read_text())
    size = database.stat().st_size
    told = hashlib.sha256(database.read_bytes()).hexdigest()
    manifest["files"][database.name] = [told, size]
    (kept / "manifest.json").write_text(json.dumps(manifest))
    with working(tmp_path, servers, "other") as other:
        other.refused("restore", str(kept), "--force")
        assert "is whole" in other.run("verify_audit")
        run, artifact, token = other.made
        found = other.python(LOOK.format(run=run, artifact=artifact, token=token))
        assert found[:2] == ["FOUND", "succeeded"]


@pytest.mark.parametrize("harm", ["database", "artifact", "manifest", "gone", "path"])
def test_a_damaged_backup_is_refused_and_changes_nothing(new: Place, kept: Path, harm: str) -> None:
    database = next(kept.glob("database.*"))
    artifact = next(path for path in (kept / "artifacts").rglob("*") if path.is_file())
    manifest = kept / "manifest.json"
    if harm == "database":
        database.write_bytes(database.read_bytes()[:-1] + b"x")
    elif harm == "artifact":
        artifact.write_bytes(b"KEPT bytes")
    elif harm == "manifest":
        manifest.unlink()
    elif harm == "gone":
        shutil.rmtree(kept / "artifacts")
    else:
        manifest.write_text(manifest.read_text().replace('"audit/head.json"', '"../head.json"'))
    new.refused("restore", str(kept))
    assert not (new.home.at.home / "continuity.sqlite3").exists()
    assert not (new.home.at.home / "artifacts").exists()
    if ON_POSTGRESQL:
        assert "lacks" in new.home.run("verify_audit").stderr  # every migration


def test_other_keys_are_refused_unless_the_loss_is_taken(
    old: Place, new: Place, keyless: Path
) -> None:
    other = {"CONTINUITY_SECRET_KEYS": "another-key-" + "z" * 40}
    assert "CONTINUITY_SECRET_KEYS" in new.refused("restore", str(keyless), **other)
    new.run("restore", str(keyless), "--without-keys", **other)
    code = f"from decisions.principals import authenticate; authenticate({old.made[2]!r})"
    assert "NotAuthenticated" in new.home.run("shell", "-c", code, **other).stderr
    assert "NOT whole" in new.refused("verify_audit", **other)


def test_keys_that_are_configured_beside_newer_ones_will_do(
    old: Place, new: Place, keyless: Path
) -> None:
    both = {"CONTINUITY_SECRET_KEYS": f"a-newer-key-{'n' * 40},{keys_of(old)}"}
    new.run("restore", str(keyless), **both)
    assert "is whole" in new.run("verify_audit", **both)


def test_a_database_that_somebody_uses_is_not_replaced(new: Place, whole: Path) -> None:
    new.run("restore", str(whole))
    using = new.home.start("shell", "--no-imports", "-c", USE)
    using.until("USES")
    said = new.refused("restore", str(whole), "--force")
    assert ("connections use" if ON_POSTGRESQL else "A process uses") in said


@pytest.mark.parametrize("place", ["inside", "taken", "file"])
def test_a_place_that_will_not_do_is_refused(old: Place, tmp_path: Path, place: str) -> None:
    folder = tmp_path / "there"
    if place == "inside":
        folder = old.home.at.home / "backups"
    elif place == "taken":
        folder.mkdir()
        (folder / "letter.txt").write_text("mine")
    else:
        folder.write_text("mine")
    old.refused("backup", str(folder))
    assert not folder.is_dir() or (folder / "letter.txt").read_text() == "mine"


@pytest.mark.skipif(ON_POSTGRESQL, reason="a file's")
def test_a_damaged_database_makes_no_backup(tmp_path: Path, servers: dict[str, str]) -> None:
    with working(tmp_path, servers, "damaged") as place:
        file = place.home.at.home / "continuity.sqlite3"
        place.python("from django.db import connection;"
                     " connection.cursor().execute('PRAGMA wal_checkpoint(TRUNCATE)')"
                     " ; print('done')")  # fmt: skip
        whole = file.read_bytes()
        page = whole.index(b"test_stepwise") // 4096 * 4096
        file.write_bytes(whole[:page] + os.urandom(4096) + whole[page + 4096 :])
        place.refused("backup", str(tmp_path / "kept"))
        assert not (tmp_path / "kept").exists()


@pytest.mark.skipif(not ON_POSTGRESQL, reason="pg_dump's")
def test_a_missing_pg_dump_is_named_with_the_way_out(old: Place, tmp_path: Path) -> None:
    said = old.refused("backup", str(tmp_path / "kept"), PATH="/nonexistent")
    assert "postgresql-client" in said
    assert not (tmp_path / "kept").exists()


def test_a_backup_of_the_other_database_or_of_a_newer_version_is_refused(
    new: Place, kept: Path
) -> None:
    manifest = kept / "manifest.json"
    told = json.loads(manifest.read_text())
    other = "sqlite" if ON_POSTGRESQL else "postgresql"
    manifest.write_text(json.dumps(told | {"database": other}))
    assert "DATABASE_URL" in new.refused("restore", str(kept))
    newer = [*told["migrations"], "runs.9999_of_next_year"]
    manifest.write_text(json.dumps(told | {"migrations": newer}))
    assert "newer version" in new.refused("restore", str(kept))


@pytest.mark.skipif(not ON_POSTGRESQL, reason="pg_dump's")
def test_no_password_stands_on_a_command_line(old: Place, tmp_path: Path) -> None:
    spy = tmp_path / "bin" / "pg_dump"
    spy.parent.mkdir()
    spy.write_text(
        '#!/bin/sh\necho "$@" "as $PGPASSWORD" >&2\necho "error: seen: $*" >&2\nexit 1\n'
    )
    spy.chmod(0o755)
    url = old.home.env["DATABASE_URL"].replace("postgres@", "postgres:hunter2@")
    said = old.refused("backup", str(tmp_path / "kept"), DATABASE_URL=url,
                       PATH=f"{spy.parent}:{os.environ['PATH']}")  # fmt: skip
    assert "hunter2" not in said
    assert "--format=custom" in said
    assert subprocess.run(["grep", "-rq", "hunter2", tmp_path], check=False).returncode == 1
