"""Measure the search of runs with a hundred thousand runs and with a million.

A search is that of the admin's list: a page of 51 runs, newest first, of all workspaces. `rare`
finds 20 runs, `common` a third of all, `two` the runs of a common and a rare word, `nothing` none.
The page of failures groups the failed runs of a day. Arguments: the number of runs (1000000), and
`sqlite` for a file of SQLite instead of PostgreSQL with fsync.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.rounds import report
from tests.services import DurablePostgresServer, PostgresServer, redis_server, served

FEW = 100_000
CALLS = 15
BATCH = 5_000
DAYS = 30
HOSTS = 3_000
SUBJECTS = (
    "登录 shop-{}.example 并导出最近的订单",
    "docs-{}.example · 16 pages",
    "forms-{}.example/contact · email, message",
)
RARE = "wombat"
STATUSES = ("succeeded",) * 18 + ("failed", "partial_success")
ERRORS = ("NAVIGATION_TIMEOUT", "ELEMENT_NOT_FOUND", "STEP_EXECUTION_FAILED", "RUN_TIMEOUT")


def rows(number: int) -> Iterator[tuple[Any, Any]]:
    """Yield runs, the oldest first, evenly over DAYS, each with the row of its terms."""
    from datetime import UTC, datetime, timedelta

    from decisions.foundation.infra.ids import new_id
    from runs.models import Run, RunTerms
    from runs.search.terms import error_columns, terms_of

    now, step = datetime.now(UTC), timedelta(days=DAYS) / number
    for n in range(number):
        status = STATUSES[n % len(STATUSES)]
        at = now - step * (number - n)
        error = (
            {"errorCode": ERRORS[n // 20 % 4], "message": "late"} if status == "failed" else None
        )
        subject = SUBJECTS[n % 3].format(n % HOSTS)
        run = Run(
            id=new_id("run_"),
            tenant_id="ten_bench",
            workspace_id=f"ws_{n % 5}",
            principal_id=f"token:tok_{n % 50}",
            trust="local",
            template_id=("agent_task", "batch_extract_pages", "submit_and_verify")[n % 3],
            template_version="1.0.0",
            mode="async",
            inputs={"urls": ["https://pages.example/1"]},
            session_id=f"sess_{n}",
            status=status,
            ready=False,
            subject=f"{subject} {RARE}" if n % (number // 20) == 7 else subject,
            labels={"env": ("prod", "test")[n % 2], "ticket": f"OPS-{n % 10_000}"},
            error=error,
            **error_columns(error),
            result={"summary": {"total": 1}},
            result_summary="read 1 page",
            total_steps=1,
            done_steps=1,
            timeout_ms=600_000,
            active_ms=n * 7919 % 100_000,
            created_at=at,
            started_at=at,
            updated_at=at,
            ended_at=at,
            hidden_at=at,
        )
        yield run, RunTerms(run_id=run.id, terms=terms_of(run))


def fill(number: int) -> None:
    """Write this many runs with their terms."""
    from django.db import connection, transaction

    from runs.models import Run, RunTerms

    made = rows(number)
    for _ in range(0, number, BATCH):
        with transaction.atomic():
            batch = [row for row, _ in zip(made, range(BATCH), strict=False)]
            Run.objects.bulk_create([run for run, _ in batch])
            RunTerms.objects.bulk_create([terms for _, terms in batch])
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


def searches() -> dict[str, Callable[[], object]]:
    """Return what is measured, by name."""
    from datetime import UTC, datetime, timedelta

    from runs.admin.run_list.failures import failures_context
    from runs.models import Run
    from runs.queries.run_search import RunFilters

    runs = Run.objects.defer("inputs", "options", "result", "error", "warnings", "next_actions")
    newest = runs.order_by("-created_at", "-id")

    def page(**filters: Any) -> Callable[[], object]:
        return lambda: len(RunFilters(**filters).apply(newest)[:51])

    class Request:
        GET: dict[str, str] = {}

    day = datetime.now(UTC) - timedelta(days=1)
    label = {"env": "prod", "ticket": "OPS-17"}
    return {
        "no filter": page(),
        "common, 登录": page(query="登录"),
        "rare": page(query=RARE),
        "two": page(query=f"登录 {RARE}"),
        "nothing": page(query="登录 forms"),
        "a host": page(query="shop-42.example"),
        "label, two of them": page(labels=label),
        "error": page(error_code="RUN_TIMEOUT"),
        "token": page(principal_id="token:tok_7"),
        "token, failed, a day": page(principal_id="token:tok_7", status="failed", since=day),
        "longest": lambda: len(
            runs.filter(ended_at__isnull=False).order_by("-active_ms", "-id")[:51]
        ),
        "failures of a day": lambda: failures_context(Request(), runs),  # type: ignore[arg-type]
    }


def median_ms(call: Callable[[], object]) -> float:
    """Return the median time of a call."""
    call()
    durations = []
    for _ in range(CALLS):
        started = time.perf_counter()
        call()
        durations.append((time.perf_counter() - started) * 1000)
    return round(statistics.median(durations), 1)


def measured(number: int) -> dict[str, float]:
    """Fill the current database and return the time of each search."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    fill(number)
    return {name: median_ms(call) for name, call in searches().items()}


def sizes() -> dict[str, int]:
    """Return the megabytes of the terms and of their index, and of the runs with theirs."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_table_size('runs_runterms'), pg_relation_size('run_terms'),"
            " pg_total_relation_size('runs_run')"
        )
        found = cursor.fetchone()
    return {
        name: size // 2**20 for name, size in zip(("terms", "index", "runs"), found, strict=True)
    }


@contextmanager
def databases(use_sqlite: bool) -> Iterator[Callable[[str], None]]:
    """Set the environment, and yield a function that creates a database and switches to it."""
    os.environ["CONTINUITY_SECRET_KEYS"] = "bench-" + "k" * 40
    os.environ["CONTINUITY_LOG_LEVEL"] = "ERROR"
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    if use_sqlite:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["CONTINUITY_HOME"] = folder
            _set_up()
            yield lambda name: _switch(str(Path(folder) / f"{name}.sqlite3"))
        return
    with served(DurablePostgresServer, PostgresServer.make) as server, redis_server() as redis:
        os.environ["DATABASE_URL"], os.environ["REDIS_URL"] = server.url, redis.url
        _set_up()
        yield _create_and_switch


def _set_up() -> None:
    import django

    django.setup()


def _create_and_switch(name: str) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    _switch(name)


def _switch(name: str) -> None:
    from django.db import connection

    connection.close()
    connection.settings_dict["NAME"] = name


def main() -> None:
    """Measure and report."""
    use_sqlite = "sqlite" in sys.argv[1:]
    many = next((int(text) for text in sys.argv[1:] if text.isdigit()), 1_000_000)
    with databases(use_sqlite) as switch:
        switch("few")
        few = measured(FEW)
        switch("many")
        results = measured(many)
        report(
            "run_search",
            unit="ms, median",
            database="sqlite" if use_sqlite else "postgresql",
            rows=[FEW, many],
            few=few,
            many=results,
            megabytes=sizes(),
        )


if __name__ == "__main__":
    main()
