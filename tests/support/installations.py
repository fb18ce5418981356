"""Separate installations on either database, for tests of backup and restore."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support.temporary_home import TemporaryHome, temporary_home

ON_POSTGRESQL = os.environ.get("CONTINUITY_TEST_DATABASE") == "postgresql"
KEYS = "a-key-of-the-fleet-" + "k" * 40
MIGRATE = """
from django.core.management import call_command
call_command("migrate", verbosity=0)
"""
SUBMIT = """
from artifacts.models import Artifact
from artifacts.services import artifact_rows, store_blob
from decisions.identity.principals import create_token, local_principal
from decisions.audit.sealer import Sealer
from runs.submission.services import submit_run
from runs.lifecycle.slots import ensure_slots
ensure_slots()
one = local_principal()
inputs = {"do": ["ok", "ok"]}
run = submit_run(principal=one, template_id="test_stepwise", inputs=inputs,
                 options={"mode": "async"}).run_id
blob = store_blob(b"kept bytes", name="a.txt", mime_type="text/plain", kind="file")
Artifact.objects.bulk_create(artifact_rows([(blob, None)], tenant_id=one.tenant_id,
                             workspace_id=one.workspace_id, run_id=run))
for _ in range(3):
    Sealer().seal_all()
print("MADE", run, blob.artifact_id, create_token(name="backup", trust="local"))
"""
READ_BACK = """
from artifacts.selectors import open_content
from decisions.identity.principals import authenticate, local_principal
from runs.models import Run
from runs.worker.worker import WorkerProcess
place = WorkerProcess()
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


class Installation:
    """A separate installation: a home, Redis and, on PostgreSQL, a database."""

    def __init__(self, home: TemporaryHome) -> None:
        self.home = home
        self.created: list[str] = []  # ids of a run and an artifact, and a token

    def run(self, *arguments: str, **env: str) -> str:
        """Run a command that must succeed and return its output."""
        done = self.home.run(*arguments, **env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *arguments: str, **env: str) -> str:
        """Run a command that must be refused and return the message on stderr."""
        done = self.home.run(*arguments, **env)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stderr

    def python(self, code: str) -> list[str]:
        """Run code in the installation and return the words of its last line."""
        return self.run("shell", "--no-imports", "-c", code).splitlines()[-1].split()


def keys_of(place: Installation) -> str:
    """Return the keys that encrypt the installation's secrets."""
    return KEYS if ON_POSTGRESQL else (place.home.paths.home / "keys").read_text().strip()


@contextmanager
def installation(
    folder: Path, servers: dict[str, str], name: str, *, like: str = "template1"
) -> Iterator[Installation]:
    """Yield an installation without tables; on PostgreSQL its database is a copy of `like`."""
    told = {
        "REDIS_URL": servers["REDIS_URL"],
        "CONTINUITY_TEMPLATE_MODULES": "tests.support.step_template",
    }
    if ON_POSTGRESQL:
        with psycopg.connect(f"{servers['server']}/postgres", autocommit=True) as server:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            server.execute(f"CREATE DATABASE {name} TEMPLATE {like}")
        told |= {"DATABASE_URL": f"{servers['server']}/{name}", "CONTINUITY_SECRET_KEYS": KEYS}
    with temporary_home(folder / name, **told) as home:
        yield Installation(home)


@contextmanager
def populated_installation(
    folder: Path, servers: dict[str, str], name: str
) -> Iterator[Installation]:
    """Yield a migrated installation with a run, an artifact and a token."""
    with installation(folder, servers, name) as place:
        place.created = place.python(MIGRATE + SUBMIT)[1:]
        yield place


@contextmanager
def copy_of(
    old: Installation, folder: Path, servers: dict[str, str], name: str
) -> Iterator[Installation]:
    """Yield a copy of an installation, to be changed; copying is faster than creating one."""
    with installation(folder, servers, name, like="old") as place:
        shutil.copytree(old.home.paths.home, place.home.paths.home)
        place.created = old.created
        yield place
