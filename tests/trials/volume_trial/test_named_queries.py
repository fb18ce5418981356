"""No operation of the trial needs to read a large table whole (PostgreSQL)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from decisions.identity.principals import Principal
from tests.trials.volume_trial.__main__ import RUN_TTL_MS
from tests.trials.volume_trial.generator import fill
from tests.trials.volume_trial.operations import Operations, rows_of, tables_scanned

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="the statistics of PostgreSQL say what was read"
)
RUNS = 300


@pytest.fixture
def index_scans_alone(principal: Principal) -> Iterator[None]:
    """Let the planner read a table whole only where no index serves: these tables are small."""
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        yield
        cursor.execute("RESET enable_seqscan")


def test_each_operation_reads_the_large_tables_through_an_index(
    index_scans_alone: None, settings: Any, tmp_path: Path
) -> None:
    settings.CONTINUITY_HOME = tmp_path
    settings.RUN_TTL_MS = RUN_TTL_MS
    fill(RUNS)
    operations = Operations(expired_runs=10)
    operations.prepare()
    found, rows = {}, {}
    for name, (before, run) in operations.by_name().items():
        before()
        found[name], answer = tables_scanned(run)
        rows[name] = rows_of(answer)
    assert not any(found.values()), found
    assert len(found) >= 10
    assert all(rows.values()), f"the time of a list without rows says nothing: {rows}"


def test_a_query_without_an_index_is_noticed(index_scans_alone: None) -> None:
    with connection.cursor() as cursor:
        read, _ = tables_scanned(
            lambda: cursor.execute("SELECT count(*) FROM runs_run WHERE result_summary = 'x'")
        )
    assert read == ["runs_run"]
