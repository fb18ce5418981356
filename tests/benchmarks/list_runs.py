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


def caller(workspace_id: str) -> Any:
    """Return a principal of a workspace."""
    from decisions.identity.principals import DEFAULT_SCOPES, Principal

    return Principal("token:bench", "ten_bench", workspace_id, DEFAULT_SCOPES, "local")


def p95_ms(call: Callable[[], object], calls: int = CALLS) -> float:
    """Return the 95th percentile of a call's time."""
    took = []
    for _ in range(calls):
        began = time.perf_counter()
        call()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.quantiles(took, n=20)[-1]


def use(database: str) -> None:
    """Switch to another database of the same server."""
    from django.db import connection

    connection.close()
    connection.settings_dict["NAME"] = database


def lists(workspace: str, filters: dict[str, Any]) -> dict[str, Any]:
    """Return the p95 in ms with few runs and with many, measured in turn."""
    from runs.queries.runs import list_runs

    principal = caller(f"ws_{workspace}")

    def side(database: str) -> float:
        use(database)
        for _ in range(5):
            list_runs(principal=principal, limit=PAGE, **filters)
        return p95_ms(lambda: list_runs(principal=principal, limit=PAGE, **filters))

    figures = alternate({"few": lambda: side("few"), "many": lambda: side("many")})
    told = {name: spread(took)["median"] for name, took in figures.items()}
    return {**told, "ratio": ratio(figures["many"], figures["few"])}


def deep_ms() -> dict[str, float]:
    """Return the median time of a page deep in the list, by its offset."""
    from runs.queries.runs import list_runs

    principal = caller("ws_big")
    total = list_runs(principal=principal, limit=1)["total"]
    told = {}
    for share in (1, 10, 50, 90, 99):
        offset = total * share // 100

        def page(at: int = offset) -> float:
            return p95_ms(lambda: list_runs(principal=principal, offset=at), calls=5)

        told[str(offset)] = round(statistics.median(page() for _ in range(3)), 1)
    return told


def write_cost() -> dict[str, Any]:
    """Return complete runs a second with the triggers and without, alternated."""
    from django.db import connection

    def rate(how: str) -> float:
        with connection.cursor() as cursor:
            for name in ("runs_total_added", "runs_total_moved"):
                cursor.execute(f"ALTER TABLE runs_run {how} TRIGGER {name}")
        one_whole_run()  # PostgreSQL plans its queries on the altered table again
        began = time.perf_counter()
        for _ in range(RUNS):
            one_whole_run()
        return RUNS / (time.perf_counter() - began)

    sides = {"counted": lambda: rate("ENABLE"), "uncounted": lambda: rate("DISABLE")}
    figures = alternate(sides, rounds=31)
    rate("ENABLE")
    cost = 1 - ratio(figures["counted"], figures["uncounted"])
    return {**{name: spread(rates) for name, rates in figures.items()}, "cost": round(cost, 3)}


def one_whole_run() -> None:
    """Write what a run of one step writes from its submit to its end, through the product's own
    functions."""
    from runs.lifecycle.changes import NewEvent, Plus, StepChange, Transition
    from runs.lifecycle.state_machine import move
    from runs.models import RunStatus, StepStatus
    from runs.queue import leases
    from runs.submission.services import submit_run

    submit_run(
        principal=caller("ws_write"),
        template_id="batch_extract_pages",
        inputs={"urls": ["https://pages.example/1"]},
        options={"mode": "async"},
    )
    held = leases.claim_run(
        "wrk_bench", lambda run: leases.ClaimedSteps(leases.read_journal(run), [])
    )
    assert held is not None
    step = StepChange(0, StepStatus.SUCCEEDED, [NewEvent("step.succeeded", {"index": 0})], {})
    guard = {"status": RunStatus.RUNNING, "lease_owner": "wrk_bench", "epoch": held.epoch}
    change = Transition(
        held.run,
        guard,
        {"result": {"ok": True}, "done_steps": Plus(1)},
        events=step.events,
        steps=[step],
        worker_id="wrk_bench",
        epoch=held.epoch,
        free_slot=True,
    )
    move(change, RunStatus.SUCCEEDED, actor="worker:wrk_bench")


def be_quiet(queue: str, run_id: str) -> None:
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

    from runs.lifecycle.slots import ensure_slots

    settings.CONTINUITY_NOTIFY_WORKERS = f"{__name__}.be_quiet"
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE few")
        cursor.execute("CREATE DATABASE many")
    for database, rows in (("few", FEW), ("many", MANY)):
        use(database)
        call_command("migrate", verbosity=0)
        ensure_slots()
        fill(rows)
    told = {
        workspace: {name: lists(workspace, filters) for name, filters in FILTERS.items()}
        for workspace in ("big", "early", "small")
    }
    use("many")
    deep = deep_ms()
    use("few")
    report(
        "list_runs",
        unit="ms, p95",
        rows=[FEW, MANY],
        lists=told,
        deep_page_ms=deep,
        writing=write_cost(),
        goals={"ratio": "<= 1.5", "cost": "<= 0.15"},
    )


if __name__ == "__main__":
    main()
