"""Measure claims by 1 to 16 processes on one queue of runs that do nothing, and how long it takes
to find the next of 10 000 runs in 1 000 workspaces.

Each claimer claims a run and writes its end until no run waits. The floor does the same with two
statements on a table of its own: `UPDATE … FOR UPDATE SKIP LOCKED` and another UPDATE.

`python -m tests.benchmarks.claims claimer` is one claimer: for each line on stdin (`ours` or
`floor`) it works until its queue is empty and prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.benchmarks.rounds import alternate, percentiles, ratio, report, spread
from tests.services import DurablePostgresServer, redis_server, served

ROOT = Path(__file__).parent.parent.parent
CLAIMERS = (1, 4, 16)
RUNS, ROUNDS = 200, 3
WAITING_RUNS, WORKSPACES, SLOTS, TIMES = 10_000, 1000, 1000, 50
FLOOR_CLAIM = (
    "UPDATE floor_run SET status = 'running' WHERE id = (SELECT id FROM floor_run"
    " WHERE status = 'queued' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
)
FLOOR_END = "UPDATE floor_run SET status = 'succeeded' WHERE id = %s"


def set_up_django() -> None:
    """Load Django with the environment of this process."""
    import django  # import late: the environment has to be set first

    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()


# --- one claimer ----------------------------------------------------------------------------------


def claim_all() -> dict[str, float]:
    """Claim and end runs until none waits; count the looks for a run and time the claims."""
    from runs.journal import writer
    from runs.models import RunStatus
    from runs.queue import leases

    looks, slowest, claimed = 0, 0.0, 0
    original = getattr(leases, "next_run")  # noqa: B009  (mypy refuses the attribute)

    def count_look(*args: Any, **kwargs: Any) -> Any:
        nonlocal looks
        looks += 1
        return original(*args, **kwargs)

    setattr(leases, "next_run", count_look)  # noqa: B010
    try:
        while True:
            began = time.perf_counter()
            lease = leases.claim_run("bench")
            slowest = max(slowest, time.perf_counter() - began)
            if lease is None:
                return {"claimed": claimed, "looks": looks - 1, "slowest_s": slowest}
            claimed += 1
            ending = writer.Ending(RunStatus.SUCCEEDED, result={})
            writer.write(lease, [], active_ms=1, ending=ending)
    finally:
        setattr(leases, "next_run", original)  # noqa: B010


def claim_all_of_floor() -> dict[str, float]:
    """Claim and end rows of the floor until none waits."""
    from django.db import connection

    claimed = 0
    with connection.cursor() as cursor:
        while True:
            cursor.execute(FLOOR_CLAIM)
            if (row := cursor.fetchone()) is None:
                return {"claimed": claimed, "looks": claimed, "slowest_s": 0.0}
            cursor.execute(FLOOR_END, row)
            claimed += 1


def run_claimer() -> None:
    """Serve the lines on stdin."""
    set_up_django()
    from django.db import connection

    connection.ensure_connection()
    print("ready", flush=True)
    for line in sys.stdin:
        found = claim_all() if line.strip() == "ours" else claim_all_of_floor()
        print(json.dumps(found), flush=True)


# --- the measurement ------------------------------------------------------------------------------


class Queue:
    """The queue and its claimers."""

    def __init__(self, claimers: list[subprocess.Popen[str]]) -> None:
        self._claimers = claimers
        self.looks: dict[int, list[float]] = {count: [] for count in CLAIMERS}
        self.slowest_s: dict[int, float] = dict.fromkeys(CLAIMERS, 0.0)

    def rate(self, kind: str, count: int) -> float:
        """Return the runs per second of this many claimers."""
        fill(RUNS, 1) if kind == "ours" else fill_floor()
        began = time.perf_counter()
        for claimer in self._claimers[:count]:
            print(kind, file=claimer.stdin, flush=True)
        found = [json.loads(read_line(claimer)) for claimer in self._claimers[:count]]
        rate = RUNS / (time.perf_counter() - began)
        if sum(one["claimed"] for one in found) != RUNS:
            raise RuntimeError(f"not every run was claimed once: {found}")
        if kind == "ours":
            self.looks[count].append(sum(one["looks"] for one in found) / RUNS)
            slowest = max(one["slowest_s"] for one in found)
            self.slowest_s[count] = round(max(self.slowest_s[count], slowest), 2)
        return rate


def read_line(claimer: subprocess.Popen[str]) -> str:
    """Return the next line of a claimer's output."""
    if claimer.stdout is None or not (line := claimer.stdout.readline()):
        raise RuntimeError("a claimer ended")
    return line


def fill(count: int, workspaces: int) -> None:
    """Replace the queue by this many runs."""
    from django.db import connection

    from decisions.identity.principals import local_principal
    from runs.models import Run
    from runs.submission.submit import submit_run

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE runs_run CASCADE")
        cursor.execute("UPDATE runs_slot SET run_id = NULL, workspace_id = NULL, worker_id = NULL")
    run_id = submit_run(
        principal=local_principal(),
        template_id="test_stepwise",
        inputs={"do": ["ok"]},
        options={"mode": "async"},
    ).run_id
    one = Run.objects.get(id=run_id)
    columns = {field.attname: getattr(one, field.attname) for field in Run._meta.concrete_fields}
    start = datetime.now(UTC)
    rows = [
        Run(
            **{
                **columns,
                "id": f"run_{number:06}",
                "session_id": f"ses_{number}",
                "workspace_id": f"w{number % workspaces:04}",
                "created_at": start + timedelta(milliseconds=number),
            }
        )
        for number in range(count - 1)
    ]
    Run.objects.bulk_create(rows, batch_size=2000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE runs_run")


def fill_floor() -> None:
    """Replace the floor's queue."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS floor_run")
        cursor.execute("CREATE TABLE floor_run (id int PRIMARY KEY, status text)")
        cursor.execute("CREATE INDEX ON floor_run (id) WHERE status = 'queued'")
        cursor.execute(
            "INSERT INTO floor_run SELECT n, 'queued' FROM generate_series(1, %s) n", [RUNS]
        )
        cursor.execute("ANALYZE floor_run")


def next_run_ms(workspaces: int) -> dict[str, float]:
    """Return how long it takes to find the next run while most slots are taken."""
    from django.db import connection

    from runs.queue.dispatch_order import next_run

    fill(WAITING_RUNS, workspaces)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_slot SET run_id = 'other' || number,"
            " workspace_id = 'w' || lpad((number %% %s)::text, 4, '0') WHERE number < %s",
            [workspaces, SLOTS - 100],
        )
        cursor.execute("ANALYZE runs_slot")
    durations = []
    for _ in range(TIMES):
        began = time.perf_counter()
        next_run("bench")
        durations.append((time.perf_counter() - began) * 1000)
    return {**percentiles(durations), "min": round(min(durations), 1)}


@contextlib.contextmanager
def claimers(count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Run claimers, ready to work, for the length of the block."""
    command = [sys.executable, "-m", "tests.benchmarks.claims", "claimer"]
    pipe = subprocess.PIPE
    with contextlib.ExitStack() as stack:
        processes = []
        for _ in range(count):
            process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
            stack.callback(process.wait, 20)
            stack.callback(process.terminate)
            processes.append(process)
        for process in processes:
            read_line(process)
        yield processes


def main() -> None:
    """Measure and report."""
    with (
        tempfile.TemporaryDirectory() as home,
        served(DurablePostgresServer, DurablePostgresServer.make) as postgres,
        redis_server() as redis,
    ):
        os.environ |= {
            "DATABASE_URL": postgres.url,
            "REDIS_URL": redis.url,
            "CONTINUITY_HOME": home,
            "CONTINUITY_SECRET_KEYS": "bench-" + "k" * 40,
            "CONTINUITY_TEMPLATE_MODULES": "tests.support.runs.step_template",
            "CONTINUITY_MAX_CONCURRENT_RUNS": str(SLOTS),
            "CONTINUITY_LOG_LEVEL": "WARNING",
        }
        set_up_django()
        from django.core.management import call_command

        from runs.queue.slots import ensure_slots

        call_command("migrate", verbosity=0)
        ensure_slots()
        with claimers(max(CLAIMERS)) as processes:
            queue = Queue(processes)
            rates = alternate(
                {
                    f"{kind}_{count}": lambda kind=kind, count=count: queue.rate(kind, count)  # type: ignore[misc]
                    for count in CLAIMERS
                    for kind in ("ours", "floor")
                },
                ROUNDS,
            )
        many = max(CLAIMERS)
        report(
            "claims",
            runs_per_s={name: spread(values) for name, values in rates.items()},
            ratio_of_16_to_1=ratio(rates[f"ours_{many}"], rates["ours_1"]),
            ratio_to_floor={
                count: ratio(rates[f"ours_{count}"], rates[f"floor_{count}"]) for count in CLAIMERS
            },
            looks_per_run={count: spread(values) for count, values in queue.looks.items()},
            slowest_claim_s=queue.slowest_s,
            next_run_ms={count: next_run_ms(count) for count in (1, WORKSPACES)},
            goals={
                "ratio_of_16_to_1": ">= 0.8",
                "looks_per_run": "<= 1.3",
                "next_run_ms": "<= 10 with 1000 workspaces",
            },
        )


if __name__ == "__main__":
    run_claimer() if sys.argv[1:] == ["claimer"] else main()
