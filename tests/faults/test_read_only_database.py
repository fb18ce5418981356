"""PostgreSQL refuses writes for some seconds, or another server takes over, while runs execute."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import DjangoDbBlocker

from decisions.identity.principals import create_token
from runs.models import Run, RunStep
from tests.faults.conftest import POSTGRESQL
from tests.faults.installation import FaultInstallation, use_database, use_installation
from tests.services import (
    PostgresServer,
    RedisServer,
    StandbyServer,
    free_port,
    postgres_server,
    standby_server,
)
from tests.support.rest.rest import submission

pytestmark = pytest.mark.skipif(not POSTGRESQL, reason="a server that can be made read-only")


@pytest.fixture(scope="module")
def postgres(django_db_blocker: DjangoDbBlocker) -> Iterator[PostgresServer]:
    """A separate PostgreSQL server that these tests may change."""
    with postgres_server() as server:
        with django_db_blocker.unblock(), use_database(PORT=server.port, NAME="continuity"):
            call_command("migrate", verbosity=0)
        yield server


@contextlib.contextmanager
def installed(database_url: str, port: int, redis: RedisServer) -> Iterator[FaultInstallation]:
    home = Path(tempfile.mkdtemp(prefix="cty-faults-"))
    made = FaultInstallation(home, database_url, redis)
    with use_database(PORT=port, NAME="continuity"), use_installation(made) as installation:
        installation.start("scheduler")
        yield installation


@pytest.fixture
def installation(
    postgres: PostgresServer, redis: RedisServer, django_db_blocker: DjangoDbBlocker
) -> Iterator[FaultInstallation]:
    """An installation on that server: one scheduler, one worker."""
    with (
        django_db_blocker.unblock(),
        installed(postgres.url, postgres.port, redis) as installation,
    ):
        installation.workers(1)
        yield installation
        call_command("flush", interactive=False, verbosity=0)
        connection.close()


def administer(server: PostgresServer, *statements: str) -> None:
    address = f"postgresql://postgres@127.0.0.1:{server.port}/continuity"
    with psycopg.connect(address, autocommit=True) as session:
        for statement in statements:
            session.execute(statement.encode())


def set_read_only(server: PostgresServer, value: str) -> None:
    change = f"ALTER SYSTEM SET default_transaction_read_only = {value}"
    administer(server, "SET default_transaction_read_only = off", change, "SELECT pg_reload_conf()")


def test_a_server_that_refuses_writes_while_a_step_ends_leaves_no_run_running(
    installation: FaultInstallation, postgres: PostgresServer, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    ids = [installation.submit(f"until:{gate}", "ok") for _ in range(3)]
    installation.wait_until(lambda: RunStep.objects.filter(index=0, status="started").count() == 3)
    set_read_only(postgres, "on")
    gate.touch()
    time.sleep(1.5)
    set_read_only(postgres, "off")
    runs = [installation.wait_for_end(run_id) for run_id in ids]
    assert {(run.status, run.times_lost) for run in runs} == {("succeeded", 0)}
    installation.check_invariants()


@pytest.mark.slow
@pytest.mark.parametrize("table", ["runs_runevent", "runs_runstep", "decisions_auditentry"])
def test_a_table_that_is_missing_for_seconds_leaves_no_run_running(
    installation: FaultInstallation, postgres: PostgresServer, tmp_path: Path, table: str
) -> None:
    gate = tmp_path / "gate"
    run_id = installation.submit(f"until:{gate}", "ok")
    installation.wait_until(lambda: RunStep.objects.filter(index=0, status="started").exists())
    administer(postgres, f"ALTER TABLE {table} RENAME TO away")
    gate.touch()
    time.sleep(3)
    administer(postgres, f"ALTER TABLE away RENAME TO {table}")
    # Failed, where its failure could be written without the table.
    assert installation.wait_for_end(run_id).status in ("succeeded", "failed")
    installation.check_invariants()


def submit_over(url: str, token: str, within_s: float) -> float:
    """Submit a run by HTTP until it is accepted; return how long that took."""
    began, headers = time.monotonic(), {"Authorization": f"Bearer {token}"}
    while True:
        with contextlib.suppress(httpx.TransportError):
            response = httpx.post(
                f"{url}/api/v1/runs", json=submission(), headers=headers, timeout=5
            )
            if response.status_code == 202:
                return time.monotonic() - began
            assert (response.status_code, response.json()["retryable"]) == (503, True)
            assert response.headers["retry-after"]
        assert time.monotonic() - began < within_s, response.text
        time.sleep(0.2)


def switch_over(primary: PostgresServer, standby: StandbyServer) -> None:
    """Let the standby take over, and the primary follow it on its old port."""
    primary.stop()
    standby.promote()
    (primary.folder / "data" / "standby.signal").touch()
    with (primary.folder / "data" / "postgresql.auto.conf").open("a") as settings:
        settings.write(f"primary_conninfo = 'host=127.0.0.1 port={standby.port} user=postgres'\n")
    primary.start()


@pytest.mark.slow
def test_all_processes_follow_a_switchover_to_a_standby(
    redis: RedisServer, django_db_blocker: DjangoDbBlocker
) -> None:
    with (
        django_db_blocker.unblock(),
        postgres_server() as primary,
        use_database(PORT=primary.port, NAME="continuity"),
    ):
        call_command("migrate", verbosity=0)
        token = create_token(name="caller")
        connection.close()
        with standby_server(primary) as standby:
            hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
            url = f"postgresql://postgres@{hosts}/continuity"
            with installed(url, primary.port, redis) as installation:
                installation.workers(1)
                web = f"http://127.0.0.1:{(port := free_port())}"
                installation.start("serve", "--port", str(port))
                submit_over(web, token, 30)
                installation.wait_until(lambda: Run.objects.filter(status="succeeded").exists())
                connection.close()
                switch_over(primary, standby)
                with use_database(PORT=standby.port):
                    submit_over(web, token, 20)
                    installation.wait_until(
                        lambda: Run.objects.filter(status="succeeded").count() == 2, seconds=20
                    )
                    assert httpx.get(f"{web}/readyz").json()["parts"]["database"]["ok"]
