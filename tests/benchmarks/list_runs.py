"""Measure a list of runs with a thousand visible runs and with a million, and the cost of the
counting triggers for a run.

PostgreSQL with fsync. Three workspaces share the runs: one has most of them, one has only runs
older than all others, one has a few of the newest. A list is `list_runs` as REST and MCP call it: a
page, here of 10 so that a thousand runs fill it too, the exact total, every filter. A complete
run's writes are those of submit, claim, step and end, with the triggers of runs/queries/totals.py
and without.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.rounds import alternate, ratio, report, spread
from tests.services import DurablePostgresServer, PostgresServer, redis_server, served

FEW, MANY = 1_000, 1_000_000
PAGE, CALLS, RUNS = 10, 40, 15
FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "status": {"status": "succeeded"},
    "template": {"template_id": "multi_tab_compare"},
    "both": {"status": "failed", "template_id": "search_extract"},
}
# Rows of ended runs; they ended within the last minute, so all of them are visible.
FILL = """
INSERT INTO runs_run (id, tenant_id, workspace_id, principal_id, trust, template_id,
    template_version, mode, inputs, options, session_id, owns_session, shared, status, ready, epoch,
    times_lost, total_steps, done_steps, last_seq, timeout_ms, active_ms, result_summary, result,
    error, warnings, next_actions, created_at, started_at, updated_at, ended_at)
SELECT 'run_' || lpad(n::text, 12, '0'), 'ten_bench',
    CASE WHEN n > {rows} * 8 / 10 THEN 'ws_early' WHEN n % 5 = 2 THEN 'ws_small'
         ELSE 'ws_big' END,
    'token:bench', 'local',
    (ARRAY['batch_extract_pages', 'multi_tab_compare', 'search_extract'])[n % 3 + 1], '1.0.0',
    'async', '{{"urls": ["https://pages.example/1"]}}', '{{}}', 'sess_' || n, true, false,
    (ARRAY['succeeded', 'failed', 'partial_success', 'canceled'])[n / 3 % 4 + 1], false, 1, 0, 1,
    1, 4, 600000, 1500, 'read 1 page', '{{"summary": {{"total": 1, "succeeded": 1}}}}',
    '{{"errorCode": "NAVIGATION_TIMEOUT", "message": "late"}}', '[]', '[]',
    now() - n * interval '1 ms', now() - n * interval '1 ms', now(), now()
FROM generate_series(1, {rows}) n"""


def fill(rows: int) -> None:
    """Fill the table of runs with exactly these rows and count them."""
    from django.db import connection

    from runs.queries.totals import fold_totals, repair_totals

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE runs_run, runs_runtotal, runs_runtotalchange CASCADE")
        cursor.execute("ALTER TABLE runs_run DISABLE TRIGGER USER")
        cursor.execute(FILL.format(rows=rows))
        cursor.execute("ALTER TABLE runs_run ENABLE TRIGGER USER")
        repair_totals()
        fold_totals()
        cursor.execute("VACUUM ANALYZE")


def make_principal(workspace_id: str) -> Any:
    """Return a principal of a workspace."""
    from decisions.identity.principals import DEFAULT_SCOPES, Principal

    return Principal("token:bench", "ten_bench", workspace_id, DEFAULT_SCOPES, "local")


def p95_ms(call: Callable[[], object], calls: int = CALLS) -> float:
    """Return the 95th percentile of a call's time."""
    durations = []
    for _ in range(calls):
        started = time.perf_counter()
        call()
        durations.append((time.perf_counter() - started) * 1000)
    return statistics.quantiles(durations, n=20)[-1]


def use_database(database: str) -> None:
    """Switch to another database of the same server."""
    from django.db import connection

    connection.close()
    connection.settings_dict["NAME"] = database


def list_times(workspace: str, filters: dict[str, Any]) -> dict[str, Any]:
    """Return the p95 in ms with few runs and with many, measured in turn."""
    from runs.queries.run_lists import list_runs

    principal = make_principal(f"ws_{workspace}")

    def p95_with(database: str) -> float:
        use_database(database)
        for _ in range(5):
            list_runs(principal=principal, limit=PAGE, **filters)
        return p95_ms(lambda: list_runs(principal=principal, limit=PAGE, **filters))

    measurements = alternate({"few": lambda: p95_with("few"), "many": lambda: p95_with("many")})
    results = {name: spread(durations)["median"] for name, durations in measurements.items()}
    return {**results, "ratio": ratio(measurements["many"], measurements["few"])}


def deep_ms() -> dict[str, float]:
    """Return the median time of a page deep in the list, by its offset."""
    from runs.queries.run_lists import list_runs

    principal = make_principal("ws_big")
    total = list_runs(principal=principal, limit=1)["total"]
    results = {}
    for percent in (1, 10, 50, 90, 99):
        offset = total * percent // 100

        def page(at: int = offset) -> float:
            return p95_ms(lambda: list_runs(principal=principal, offset=at), calls=5)

        results[str(offset)] = round(statistics.median(page() for _ in range(3)), 1)
    return results


def write_cost() -> dict[str, Any]:
    """Return complete runs a second with the triggers and without, alternated."""
    from django.db import connection

    def runs_per_s(action: str) -> float:
        with connection.cursor() as cursor:
            for name in ("runs_total_added", "runs_total_moved"):
                cursor.execute(f"ALTER TABLE runs_run {action} TRIGGER {name}")
        write_complete_run()  # PostgreSQL plans its queries on the altered table again
        started = time.perf_counter()
        for _ in range(RUNS):
            write_complete_run()
        return RUNS / (time.perf_counter() - started)

    variants = {"counted": lambda: runs_per_s("ENABLE"), "uncounted": lambda: runs_per_s("DISABLE")}
    measurements = alternate(variants, rounds=31)
    runs_per_s("ENABLE")
    cost = 1 - ratio(measurements["counted"], measurements["uncounted"])
    return {**{name: spread(rates) for name, rates in measurements.items()}, "cost": round(cost, 3)}


def write_complete_run() -> None:
    """Write what a run of one step writes from its submit to its end, through the product's own
    functions."""
    from runs.lifecycle.changes import NewEvent, Plus, StepChange, Transition
    from runs.lifecycle.state_machine import move
    from runs.models import RunStatus, StepStatus
    from runs.queue import leases
    from runs.submission.submit import submit_run

    submit_run(
        principal=make_principal("ws_write"),
        template_id="batch_extract_pages",
        inputs={"urls": ["https://pages.example/1"]},
        options={"mode": "async"},
    )
    lease = leases.claim_run("wrk_bench")
    assert lease is not None
    step = StepChange(0, StepStatus.SUCCEEDED, [NewEvent("step.succeeded", {"index": 0})], {})
    guard = {"status": RunStatus.RUNNING, "lease_owner": "wrk_bench", "epoch": lease.epoch}
    change = Transition(
        lease.run,
        guard,
        {"result": {"ok": True}, "done_steps": Plus(1)},
        events=step.events,
        steps=[step],
        worker_id="wrk_bench",
        epoch=lease.epoch,
        free_slot=True,
    )
    move(change, RunStatus.SUCCEEDED, actor="worker:wrk_bench")


def skip_notification(queue: str, run_id: str) -> None:
    """Replace the wake-up: no worker needs it."""


def main() -> None:
    """Measure and report."""
    with served(DurablePostgresServer, PostgresServer.make) as server, redis_server() as redis:
        os.environ["DATABASE_URL"] = server.url
        os.environ["CONTINUITY_SECRET_KEYS"] = "bench-" + "k" * 40
        os.environ["REDIS_URL"] = redis.url
        os.environ["CONTINUITY_LOG_LEVEL"] = "ERROR"
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        sys.argv[1:1] = ["mcp_stdio"]  # the MCP server's settings: no admin to load
        measure()


def measure() -> None:
    """Measure in the current environment."""
    import django

    django.setup()

    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    from runs.queue.slots import ensure_slots

    settings.CONTINUITY_NOTIFY_WORKERS = f"{__name__}.skip_notification"
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE few")
        cursor.execute("CREATE DATABASE many")
    for database, rows in (("few", FEW), ("many", MANY)):
        use_database(database)
        call_command("migrate", verbosity=0)
        ensure_slots()
        fill(rows)
    results = {
        workspace: {name: list_times(workspace, filters) for name, filters in FILTERS.items()}
        for workspace in ("big", "early", "small")
    }
    use_database("many")
    deep = deep_ms()
    use_database("few")
    report(
        "list_runs",
        unit="ms, p95",
        rows=[FEW, MANY],
        lists=results,
        deep_page_ms=deep,
        writing=write_cost(),
        goals={"ratio": "<= 1.5", "cost": "<= 0.15"},
    )


if __name__ == "__main__":
    main()
