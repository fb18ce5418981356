"""Workers and a scheduler behind a PgBouncer in transaction mode, which is killed under load."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from django.db import connection
from django.db.models import QuerySet

from runs.models import Run, RunStep
from tests.faults.installation import FaultInstallation
from tests.services import PGBOUNCER, PgBouncerServer, pgbouncer_server

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="a pooler of PostgreSQL"),
    pytest.mark.skipif(PGBOUNCER is None, reason="needs pgbouncer"),
]
SIZE = 4  # connections to the server; each worker alone has more clients


@pytest.fixture
def pooler(installation: FaultInstallation) -> Iterator[PgBouncerServer]:
    """A pooler that all processes of the installation use; this process does not."""
    port = int(connection.settings_dict["PORT"])
    with pgbouncer_server(postgres_port=port, size=SIZE) as server:
        address = f"postgresql://postgres@127.0.0.1:{server.port}"
        installation.env["DATABASE_URL"] = f"{address}/{connection.settings_dict['NAME']}"
        installation.env["CONTINUITY_TRANSACTION_POOLING"] = "true"
        yield server
        installation.close()


def test_a_pooler_killed_during_runs_loses_no_run(
    installation: FaultInstallation, pooler: PgBouncerServer, tmp_path: Path
) -> None:
    installation.start("scheduler")
    installation.workers(2)
    gate, mark = tmp_path / "gate", tmp_path / "mark"
    ids = [installation.submit() for _ in range(10)]
    long_id = installation.submit(f"touch:{mark}", f"until:{gate}", "ok")
    installation.wait_until(
        lambda: RunStep.objects.filter(run_id=long_id, index=1, status="started").exists()
    )
    pooler.kill()
    ids += [installation.submit() for _ in range(10)]
    pooler.start()
    gate.touch()
    runs = [installation.wait_for_end(run_id) for run_id in [*ids, long_id]]
    assert {run.status for run in runs} == {"succeeded"}
    assert mark.read_text() == "x"
    installation.check_invariants()


def has_rows(rows: QuerySet[Run], count: int) -> bool:
    return rows.count() >= count


@pytest.mark.slow
def test_a_load_of_runs_survives_restarts_of_the_pooler(
    installation: FaultInstallation, pooler: PgBouncerServer
) -> None:
    installation.start("scheduler")
    installation.workers(3)
    for end in (pooler.kill, pooler.stop, pooler.kill):
        ids = [installation.submit(*["ok"] * 3) for _ in range(100)]
        done = Run.objects.filter(id__in=ids, status="succeeded")
        installation.wait_until(partial(has_rows, done, 20))
        end()
        pooler.start()
    installation.wait_until(lambda: not Run.objects.filter(ended_at__isnull=True).exists())
    assert set(Run.objects.values_list("status", flat=True)) == {"succeeded"}
    assert set(Run.objects.values_list("times_lost", flat=True)) == {0}
    installation.check_invariants()
