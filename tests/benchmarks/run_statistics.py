"""Measure the statistics: the values of all plots for each time range, from the roll-ups that ten
million runs in twenty workspaces and with ten templates leave, and how fast ended runs are added.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from datetime import UTC, datetime
from typing import Any

from tests.benchmarks.rounds import report
from tests.services import PostgresServer, redis_server, served

RUNS, WORKSPACES, TEMPLATES = 10_000_000, 20, 10
ENDED, STEPS = 2_000, 10
CALLS = 7
# One row of each period that is kept, for each workspace and template and their totals.
PERIODS = """
INSERT INTO runs_runstatistic (resolution_s, at, workspace_id, template_id, succeeded, failed,
    active_ms, durations, waits, steps, pages, input_tokens, output_tokens, cost_micro_usd, slot_ms,
    sampled_ms)
SELECT %s, at, w, t, 900, 100, 5000000, %s, %s, %s, 800, 1000, 100, 5000, 100000, 900000
FROM generate_series(%s::timestamptz, %s::timestamptz, %s * interval '1 s') at,
    unnest(%s::text[]) w, unnest(%s::text[]) t"""
RUN = """
INSERT INTO runs_run (id, tenant_id, workspace_id, principal_id, trust, template_id,
    template_version, mode, inputs, options, session_id, owns_session, shared, status, ready,
    times_lost, epoch, total_steps, done_steps, last_seq, timeout_ms, active_ms, result_summary,
    warnings, next_actions, created_at, started_at, updated_at, ended_at)
SELECT 'run_' || n, 't', 'ws_' || n %% 20, 'local', 'local', 'template_' || n %% 10, '1', 'async',
    '{{}}', '{{}}', 'sess_' || n, true, false, 'succeeded', false, 0, 1, {steps}, {steps}, 2,
    600000, 1000 + n, '', '[]', '[]', now(), now(), now(), now()
FROM generate_series(1, {runs}) n"""
STEP = """
INSERT INTO runs_runstep (run_id, index, name, effect, effect_key, input, status, owner, epoch,
    attempts, output)
SELECT 'run_' || n, i, 'read https://pages.example/' || i, 'read', n || ':' || i, '{{}}',
    'succeeded', 'w', 1, 1, '{{"title": "A page"}}'
FROM generate_series(1, {runs}) n, generate_series(0, {steps} - 1) i"""


def fill_periods(now: datetime) -> int:
    """Insert the rows of all periods; return how many there are."""
    from django.db import connection

    from runs.statistics.periods import KEPT, start_of

    buckets = json.dumps({str(bucket): 9 for bucket in range(60, 100)})
    steps = json.dumps({f"kind {number}": 900 for number in range(12)})
    workspaces = ["", *(f"ws_{number}" for number in range(WORKSPACES))]
    templates = ["", *(f"template_{number}" for number in range(TEMPLATES))]
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE runs_runstatistic")
        for resolution_s, kept in KEPT.items():
            first, last = start_of(now - kept, resolution_s), start_of(now, resolution_s)
            values: list[Any] = [resolution_s, buckets, buckets, steps, first, last, resolution_s]
            cursor.execute(PERIODS, [*values, workspaces, templates])
        cursor.execute("VACUUM ANALYZE runs_runstatistic")
        cursor.execute("SELECT COUNT(*) FROM runs_runstatistic")
        return int(cursor.fetchone()[0])


def median_ms(name: str, **scope: str) -> float:
    """Return the median time to read the values of all nine plots."""
    from runs.statistics.series import statistics as read

    durations = []
    for _ in range(CALLS + 1):
        started = time.perf_counter()
        read(name, **scope)
        durations.append((time.perf_counter() - started) * 1000)
    return round(statistics.median(durations[1:]), 1)


def measure_reads(now: datetime) -> dict[str, Any]:
    """Return the number of rows, and the times by range and scope."""
    from runs.statistics.series import RANGES

    scopes: dict[str, dict[str, str]] = {
        "all": {},
        "one workspace": {"workspace_id": "ws_3"},
        "one template": {"template_id": "template_3"},
    }
    rows = fill_periods(now)
    times = {
        title: {name: median_ms(name, **scope) for name in RANGES}
        for title, scope in scopes.items()
    }
    return {"rows": rows, "ms": times}


def measure_fold() -> float:
    """Return how many ended runs are added per second."""
    from django.db import connection

    from runs.statistics.folding import fold_statistics

    with connection.cursor() as cursor:
        cursor.execute(RUN.format(runs=ENDED, steps=STEPS).replace("%%", "%"))
        cursor.execute(STEP.format(runs=ENDED, steps=STEPS))
        cursor.execute("ANALYZE")
    started, folded = time.perf_counter(), fold_statistics()
    assert folded == ENDED, folded
    return round(ENDED / (time.perf_counter() - started))


def main() -> None:
    """Measure and report."""
    with served(PostgresServer, PostgresServer.make) as server, redis_server() as redis:
        os.environ["DATABASE_URL"] = server.url
        os.environ["CONTINUITY_SECRET_KEYS"] = "bench-" + "k" * 40
        os.environ["REDIS_URL"] = redis.url
        os.environ["CONTINUITY_LOG_LEVEL"] = "ERROR"
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        folded_per_s = measure_fold()
        reads = measure_reads(datetime.now(UTC))
    report(
        "run_statistics",
        unit="ms for all nine plots",
        runs_behind=RUNS,
        folded_runs_per_s=folded_per_s,
        steps_per_run=STEPS,
        **reads,
    )


if __name__ == "__main__":
    main()
