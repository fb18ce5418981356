"""PostgreSQL is restarted or hangs while workers execute runs."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import DjangoDbBlocker

from runs.models import Run, RunStep, Worker
from tests.faults.conftest import POSTGRESQL
from tests.faults.installation import FaultInstallation, use_database, use_installation
from tests.services import PostgresServer, RedisServer, postgres_server

pytestmark = pytest.mark.skipif(not POSTGRESQL, reason="a server that can be restarted")


@pytest.fixture(scope="module")
def postgres(django_db_blocker: DjangoDbBlocker) -> Iterator[PostgresServer]:
    """A separate PostgreSQL server that these tests may stop."""
    with postgres_server() as server:
        with django_db_blocker.unblock(), use_database(PORT=server.port, NAME="continuity"):
            call_command("migrate", verbosity=0)
        yield server


@pytest.fixture
def installation(
    postgres: PostgresServer, redis: RedisServer, django_db_blocker: DjangoDbBlocker
) -> Iterator[FaultInstallation]:
    """An installation on that PostgreSQL server: one scheduler, two workers."""
    home = Path(tempfile.mkdtemp(prefix="cty-faults-"))
    with django_db_blocker.unblock(), use_database(PORT=postgres.port, NAME="continuity"):
        with use_installation(FaultInstallation(home, postgres.url, redis)) as new_installation:
            new_installation.start("scheduler")
            new_installation.workers(2)
            yield new_installation
        call_command("flush", interactive=False, verbosity=0)
        connection.close()


@pytest.mark.slow
def test_a_restart_during_trivial_runs_loses_no_run(
    installation: FaultInstallation, postgres: PostgresServer
) -> None:
    """Celery keeps its connections between tasks, so a worker has to detect the dead ones."""
    ids = [installation.submit() for _ in range(20)]
    installation.wait_until(lambda: Run.objects.filter(status="succeeded").count() >= 5)
    connection.close()
    postgres.restart()
    ids += [installation.submit() for _ in range(10)]
    runs = [installation.wait_for_end(run_id) for run_id in ids]
    assert {(run.status, run.times_lost) for run in runs} == {("succeeded", 0)}
    installation.check_invariants()


def test_a_restart_during_long_runs_releases_and_resumes_them(
    installation: FaultInstallation, postgres: PostgresServer, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    marks = [tmp_path / str(number) for number in range(5)]
    ids = [installation.submit(f"touch:{mark}", f"until:{gate}", "ok") for mark in marks]
    installation.wait_until(lambda: RunStep.objects.filter(index=1, status="started").count() == 5)
    before = set(Worker.objects.filter(lost_at__isnull=True).values_list("id", flat=True))
    connection.close()
    postgres.restart()
    gate.touch()
    runs = [installation.wait_for_end(run_id) for run_id in ids]
    assert {run.status for run in runs} == {"succeeded"}
    assert [mark.read_text() for mark in marks] == ["x"] * 5
    alive = set(Worker.objects.filter(lost_at__isnull=True).values_list("id", flat=True))
    assert len(alive) == len(before) == 2
    installation.check_invariants()


@pytest.mark.slow
def test_workers_wait_for_a_server_that_is_unavailable_for_longer_than_the_lease(
    installation: FaultInstallation, postgres: PostgresServer, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    ids = [installation.submit("ok", f"until:{gate}", "ok") for _ in range(3)]
    installation.wait_until(lambda: RunStep.objects.filter(index=1, status="started").count() == 3)
    connection.close()
    postgres.stop()
    gate.touch()
    time.sleep(4)
    assert all(process.is_running for process in installation.processes)
    postgres.start()
    assert {installation.wait_for_end(run_id).status for run_id in ids} == {"succeeded"}
    installation.check_invariants()


def _send_all(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # a child process that was about to end
            process.send_signal(number)


@pytest.mark.slow
def test_workers_stop_their_steps_before_the_lease_expires_when_the_server_hangs(
    installation: FaultInstallation, postgres: PostgresServer, tmp_path: Path
) -> None:
    """No query fails and no query is answered, so only the worker's own clock shows that the lease
    expires."""
    mark = tmp_path / "mark"
    run_id = installation.submit("ok", "sleep:8", f"touch:{mark}")
    installation.wait_until(lambda: RunStep.objects.filter(index=1, status="started").exists())
    connection.close()
    assert postgres._process is not None
    server = psutil.Process(postgres._process.pid)
    stopped = [server, *server.children(recursive=True)]
    _send_all(stopped, signal.SIGSTOP)
    time.sleep(4)
    _send_all(stopped, signal.SIGCONT)
    run = installation.wait_for_end(run_id)
    assert run.status == "succeeded"
    assert mark.read_text() == "x"
    # The first attempt, of which seconds were left, was stopped in time. On a busy machine the
    # second may be, too.
    assert RunStep.objects.get(run=run, index=1).attempts >= 2
    installation.check_invariants()
