"""`python -m tests.trials.volume_trial [RUNS]`: time operations on a small and on a large database.

The large one has RUNS ended runs (1000000) with ten events and four sealed audit rows each; the
small one has a thousand, so that each list has a full page in both. PostgreSQL. Prints a Markdown
table and one line of JSON. Exits with 1 if an operation takes more than twice its time on the small
database, reads a large table whole, or does not find as many rows in both.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.rounds import report
from tests.services import DurablePostgresServer, PostgresServer, redis_server, served

if TYPE_CHECKING:
    from tests.trials.volume_trial.operations import Operations
Times = dict[str, dict[str, list[float]]]
FEW, RUNS, TIMES, MOST = 1_000, 1_000_000, 15, 2.0
RUN_TTL_MS = 26 * 24 * 60 * 60 * 1000  # the age of the oldest run and more: lists have full pages


def main() -> int:
    """Fill, measure and report."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    with (
        tempfile.TemporaryDirectory() as home,
        served(DurablePostgresServer, PostgresServer.make) as server,
        redis_server() as redis,
    ):
        os.environ.update(
            DATABASE_URL=server.url,
            REDIS_URL=redis.url,
            CONTINUITY_HOME=home,
            CONTINUITY_SECRET_KEYS="volume-" + "k" * 40,
            CONTINUITY_RUN_TTL_MS=str(RUN_TTL_MS),
            CONTINUITY_LOG_LEVEL="ERROR",
            DJANGO_SETTINGS_MODULE="config.settings",
        )
        return measure(runs, Path(home))


def measure(runs: int, home: Path) -> int:
    """Measure in the current environment."""
    import django

    django.setup()

    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    from tests.trials.volume_trial.generator import fill
    from tests.trials.volume_trial.operations import Operations, rows_of, tables_scanned

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.CONTINUITY_NOTIFY_WORKERS = "tests.benchmarks.list_runs.skip_notification"
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE small")
        cursor.execute("CREATE DATABASE large")

    def use(name: str) -> None:
        connection.close()
        connection.settings_dict["NAME"] = name
        settings.CONTINUITY_HOME = home / name

    prepared: dict[str, Operations] = {}
    for name in ("small", "large"):
        use(name)
        (home / name).mkdir()
        call_command("migrate", verbosity=0)
        started = time.monotonic()
        fill(runs if name == "large" else FEW)
        say(f"{name}: filled in {time.monotonic() - started:.0f} s")
        prepared[name] = Operations()
        prepared[name].prepare()
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    times: Times = {name: {} for name in prepared}
    rows: dict[str, dict[str, int]] = {name: {} for name in prepared}
    for _ in range(TIMES):
        for name, operations in prepared.items():
            use(name)
            for operation, (before, run) in operations.by_name().items():
                before()
                started = time.perf_counter()
                answer = run()
                taken = (time.perf_counter() - started) * 1000
                times[name].setdefault(operation, []).append(taken)
                rows[name][operation] = rows_of(answer)
    scanned = {}
    for operation, (before, run) in prepared["large"].by_name().items():
        before()
        scanned[operation], _ = tables_scanned(run)
    return print_report(runs, times, rows, scanned)


def print_report(
    runs: int, times: Times, rows: dict[str, dict[str, int]], scanned: dict[str, list[str]]
) -> int:
    """Print the table and the line of JSON; return the exit code."""
    found: dict[str, Any] = {}
    say("| operation | rows | small, ms | large, ms | ratio | large tables read whole |")
    say("|---|---|---|---|---|---|")
    for operation, tables in scanned.items():
        small = statistics.median(times["small"][operation][1:])
        large = statistics.median(times["large"][operation][1:])
        few, many = rows["small"][operation], rows["large"][operation]
        found[operation] = {
            "rows": [few, many],
            "small_ms": round(small, 1),
            "large_ms": round(large, 1),
            "ratio": round(large / small, 2),
            "scanned": tables,
        }
        read = ", ".join(tables) or "none"
        number = f"{few}" if few == many else f"{few} and {many}"
        say(
            f"| {operation} | {number} | {small:.1f} | {large:.1f} | {large / small:.2f} | {read} |"
        )
    missed = [
        name
        for name, one in found.items()
        if one["ratio"] > MOST or one["scanned"] or len(set(one["rows"])) > 1
    ]
    report("volume", runs=runs, operations=found, goal=f"ratio <= {MOST}, none", missed=missed)
    return bool(missed)


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
