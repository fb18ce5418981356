"""Continuity behind a real PgBouncer in transaction mode, which gives each transaction any of its
connections to the server.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test import override_settings

from artifacts.storage.blob_lock import blob_lock
from decisions.identity.principals import Principal
from runs.management.commands.scheduler import Command as Scheduler
from runs.management.commands.worker import Command as Worker
from runs.operations.backups import postgresql_dump
from runs.operations.health.checks import check_pooling
from runs.operations.home import prepare
from runs.operations.home.errors import BackupError, PoolingNotSet
from runs.operations.home.pooling import pools_transactions
from runs.queue.slots import ensure_slots
from tests.faults.installation import use_database
from tests.faults.invariants import broken_invariants
from tests.services import PGBOUNCER, PgBouncerServer, pgbouncer_server
from tests.support.rest.rest import json_of, refusal, submission
from tests.support.rest.rest_server import close_pooled_connections
from tests.support.runs.competing_actors import Actor, end_all_runs
from tests.support.runs.concurrent_calls import at_once

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="a pooler of PostgreSQL"),
    pytest.mark.skipif(PGBOUNCER is None, reason="needs pgbouncer"),
]
SIZE = 2  # connections to the server: fewer than clients
MakePooler = Callable[[str], PgBouncerServer]


@pytest.fixture
def make_pooler(principal: Principal) -> Iterator[MakePooler]:
    """Return a function that starts a pooler of a mode and lets this process use it."""
    with contextlib.ExitStack() as stack:

        def make(mode: str) -> PgBouncerServer:
            port = int(connection.settings_dict["PORT"])
            pooler = stack.enter_context(pgbouncer_server(postgres_port=port, mode=mode, size=SIZE))
            stack.enter_context(use_database(PORT=pooler.port))
            return pooler

        yield make


@pytest.fixture
def pooler(make_pooler: MakePooler) -> Iterator[PgBouncerServer]:
    """A pooler in transaction mode that this process uses, as configured."""
    with override_settings(TRANSACTION_POOLING=True):
        yield make_pooler("transaction")
    connection.execute_wrappers.clear()  # they set the lock limit of transactions


@pytest.mark.parametrize(
    ("mode", "is_set", "verdict"),
    [
        ("transaction", False, "bad"),
        ("transaction", True, "ok"),
        ("session", False, "ok"),
        ("session", True, "note"),
    ],
)
def test_doctor_compares_the_setting_with_the_pooler(
    make_pooler: MakePooler, mode: str, is_set: bool, verdict: str
) -> None:
    make_pooler(mode)
    with override_settings(TRANSACTION_POOLING=is_set):
        found = check_pooling()
    assert found.verdict == verdict
    assert ("CONTINUITY_TRANSACTION_POOLING" in found.what + found.recovery) == (verdict != "ok")


def test_without_a_pooler_none_is_found(principal: Principal) -> None:
    assert not pools_transactions()


def test_nothing_starts_behind_a_pooler_that_the_settings_do_not_name(
    make_pooler: MakePooler,
) -> None:
    make_pooler("transaction")
    for command in (prepare.prepare_home, Worker().handle, Scheduler().handle):
        with (
            override_settings(TRANSACTION_POOLING=False),
            pytest.raises(PoolingNotSet, match="Set CONTINUITY_TRANSACTION_POOLING=true"),
        ):
            command()
    with override_settings(TRANSACTION_POOLING=True):
        prepare.prepare_home()


@pytest.mark.usefixtures("pooler")
def test_transitions_of_many_clients_share_the_connections() -> None:
    ensure_slots()
    actors = [Actor(seed) for seed in range(6)]
    until = time.monotonic() + 60

    def made() -> Counter[str]:
        return sum((actor.made for actor in actors), Counter())

    def is_over() -> bool:
        return made()["end"] >= 5 or time.monotonic() >= until

    at_once([partial(actor.act, is_over) for actor in actors])
    assert made()["end"] >= 5
    end_all_runs()
    assert broken_invariants() == []


def test_the_lock_limit_of_calls_does_not_reach_other_clients(
    api: httpx.Client, pooler: PgBouncerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "DATABASE_LOCK_TIMEOUT_MS", 200)
    close_pooled_connections()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE runs_run")
        began = time.monotonic()
        problem = refusal(api.post("/api/v1/runs", json=submission(), timeout=5), 503)
        assert time.monotonic() - began < 4
    assert problem["message"] == "A lock in the database was not released in time."
    json_of(api.post("/api/v1/runs", json=submission()), 202)
    close_pooled_connections()
    assert limits_of(pooler) == {"0"}


def limits_of(pooler: PgBouncerServer) -> set[str]:
    """Return the lock_timeout of all connections of the pool, each held by a transaction."""
    address = f"postgresql://postgres@127.0.0.1:{pooler.port}/{connection.settings_dict['NAME']}"
    connection.close()
    clients = [psycopg.connect(address, prepare_threshold=None) for _ in range(SIZE)]
    try:
        rows = [client.execute("SHOW lock_timeout").fetchone() for client in clients]
    finally:
        for client in clients:
            client.close()
    return {row[0] for row in rows if row is not None}


@pytest.mark.usefixtures("pooler")
def test_a_blob_lock_leaves_no_lock_on_the_connection_of_the_pool() -> None:
    held, released = threading.Event(), threading.Event()
    order: list[str] = []

    def collect() -> None:
        with blob_lock("aa/bb", shared=False):
            held.set()
            released.wait(20)
            order.append("collector")

    def write() -> None:
        held.wait(20)
        threading.Timer(0.1, released.set).start()
        with blob_lock("aa/bb", shared=True):
            order.append("writer")

    at_once([collect, write])
    assert order == ["collector", "writer"]
    with connection.cursor() as cursor:
        cursor.execute(  # those of other databases belong to tests that run at the same time
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database"
            " WHERE locktype = 'advisory' AND datname = current_database()"
        )
        assert cursor.fetchone() == (0,)


@pytest.mark.usefixtures("pooler")
def test_a_backup_is_refused_and_leaves_the_connections_as_they_were(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="the server's own address as DATABASE_URL"):
        postgresql_dump.dump(tmp_path)
    with connection.cursor() as cursor:
        cursor.execute("SHOW search_path")
        assert cursor.fetchone() == ('"$user", public',)
