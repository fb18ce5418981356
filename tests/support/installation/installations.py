"""Separate installations on either database, for tests of backup and restore."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support.installation.temporary_home import TemporaryHome, temporary_home

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
from runs.models import Run
from runs.submission.submit import submit_run
from runs.queue.slots import ensure_slots
ensure_slots()
principal = local_principal()
inputs = {"do": ["ok", "ok"]}
run = submit_run(principal=principal, template_id="test_stepwise", inputs=inputs,
                 options={"mode": "async"}).run_id
blob = store_blob(b"some bytes", name="a.txt", mime_type="text/plain", kind="file")
Artifact.objects.bulk_create(artifact_rows([(blob, None)], owner=Run.objects.get(id=run),
                             run_id=run))
for _ in range(3):
    Sealer().seal_all()
print("MADE", run, blob.artifact_id, create_token(name="backup", trust="local"))
"""
READ_BACK = """
from artifacts.selectors import open_content
from decisions.identity.principals import authenticate, local_principal
from runs.models import Run
from runs.worker.worker import WorkerProcess
worker = WorkerProcess()
worker.open()
worker.work()
worker.close()
content = open_content(principal=local_principal(), artifact_id="{artifact}")[1].read()
print("FOUND", Run.objects.get(id="{run}").status, content, authenticate("{token}").trust)
"""
WRITE = """
print("WRITES", flush=True)
while True:
    submit_run(principal=principal, template_id="test_stepwise", inputs=inputs,
               options={"mode": "async"})
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
        process = self.home.run(*arguments, **env)
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    def refused(self, *arguments: str, **env: str) -> str:
        """Run a command that must be refused and return the message on stderr."""
        process = self.home.run(*arguments, **env)
        assert process.returncode == 1, process.stdout + process.stderr
        assert "Traceback" not in process.stderr, process.stderr
        return process.stderr

    def python(self, code: str) -> list[str]:
        """Run code in the installation and return the words of its last line."""
        return self.run("shell", "--no-imports", "-c", code).splitlines()[-1].split()


def keys_of(installation: Installation) -> str:
    """Return the keys that encrypt the installation's secrets."""
    return KEYS if ON_POSTGRESQL else (installation.home.paths.home / "keys").read_text().strip()


@contextmanager
def installation(
    folder: Path, servers: dict[str, str], name: str, *, like: str = "template1"
) -> Iterator[Installation]:
    """Yield an installation without tables; on PostgreSQL its database is a copy of `like`."""
    env = {
        "REDIS_URL": servers["REDIS_URL"],
        "CONTINUITY_TEMPLATE_MODULES": "tests.support.runs.step_template",
    }
    if ON_POSTGRESQL:
        with psycopg.connect(f"{servers['server']}/postgres", autocommit=True) as server:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            server.execute(f"CREATE DATABASE {name} TEMPLATE {like}")
        env |= {"DATABASE_URL": f"{servers['server']}/{name}", "CONTINUITY_SECRET_KEYS": KEYS}
    with temporary_home(folder / name, **env) as home:
        yield Installation(home)


@contextmanager
def populated_installation(
    folder: Path, servers: dict[str, str], name: str
) -> Iterator[Installation]:
    """Yield a migrated installation with a run, an artifact and a token."""
    with installation(folder, servers, name) as new:
        new.created = new.python(MIGRATE + SUBMIT)[1:]
        yield new


@contextmanager
def copy_of(
    old: Installation, folder: Path, servers: dict[str, str], name: str
) -> Iterator[Installation]:
    """Yield a copy of an installation, to be changed; copying is faster than creating one."""
    with installation(folder, servers, name, like="old") as copy:
        shutil.copytree(old.home.paths.home, copy.home.paths.home)
        copy.created = old.created
        yield copy
