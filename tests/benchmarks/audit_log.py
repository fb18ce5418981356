"""Measure how fast the audit log is sealed and checked, on PostgreSQL with fsync.

Sealing a backlog is compared with bare inserts of rows of the same size and indexes, in batches of
the same size; checking, with reading the same rows and computing one SHA-256 of each. Under load, a
writer adds 500 rows a second while a sealer runs: the delay from the commit of each batch until its
last row is sealed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.benchmarks.rounds import alternate, ratio, report, spread
from tests.services import DurablePostgresServer, PostgresServer, served

ROWS = int(os.environ.get("BENCH_AUDIT_ROWS", "20000"))
ROUNDS = 5
LOAD_S, PER_SECOND, BATCH_ROWS = 6.0, 500, 25
FLOOR_TABLE = """
CREATE TABLE floor (position bigint PRIMARY KEY, entry_id bigint UNIQUE, mac varchar(64) UNIQUE,
                   prev varchar(64), hash varchar(64))"""
READ = """
SELECT s.*, e.* FROM decisions_auditseal s JOIN decisions_auditentry e ON e.id = s.entry_id
WHERE s.position > %s AND s.position <= %s ORDER BY s.position"""


def write(rows: int) -> None:
    """Write the audit rows that a run writes."""
    from decisions.audit.record import AuditEvent, record_all

    metadata = {"from": "queued", "to": "running", "workerId": "wrk_01kb3x5j2e6s9w1z4b7f0h3k5m"}
    workspace = "ten_01kb3x5j2e6s9w1z4b7f0h3k5m", "ws_01kb3x5j2e6s9w1z4b7f0h3k5m"
    for start in range(0, rows, 500):
        record_all(
            [
                AuditEvent(
                    "run.started",
                    "worker:wrk_01kb3x5j2e6s9w1z4b7f0h3k5m",
                    "run",
                    "run_01kb3x5h7c9v2m4q8t6w0y1z3a",
                    *workspace,
                    {**metadata, "epoch": number},
                )
                for number in range(start, min(start + 500, rows))
            ]
        )


def sealed_per_s(seal_all: Callable[[], int]) -> float:
    """Return how many rows of a backlog the sealer seals in a second."""
    write(ROWS)
    started = time.perf_counter()
    sealed = seal_all()
    return sealed / (time.perf_counter() - started)


def inserted_per_s() -> float:
    """Return how many rows of the size of a seal are inserted in a second."""
    from django.db import connection, transaction

    line = "(%s, %s, %s, %s, %s)"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS floor; {FLOOR_TABLE}")
        rows: list[list[Any]] = [
            [n, n, hashlib.sha256(b"%d" % n).hexdigest(), "p" * 64, "h" * 64] for n in range(ROWS)
        ]
        started = time.perf_counter()
        for start in range(0, ROWS, 500):
            part = rows[start : start + 500]
            values = ", ".join([line] * len(part))
            with transaction.atomic():
                cursor.execute(
                    f"INSERT INTO floor VALUES {values}",  # noqa: S608
                    [value for row in part for value in row],
                )
        return ROWS / (time.perf_counter() - started)


def checked_per_s() -> float:
    """Return how many rows the check verifies in a second."""
    from decisions.audit.verify import check_audit_log

    started = time.perf_counter()
    result = check_audit_log(processes=os.cpu_count() or 1)
    assert result.faults == 0, result.messages
    return result.sealed / (time.perf_counter() - started)


def read_per_s() -> float:
    """Return how many rows are read and hashed once in a second."""
    from django.db import connection

    from decisions.audit.chain import head_of_chain
    from decisions.audit.verify import BATCH_SIZE as PAGE

    last = head_of_chain().position
    started = time.perf_counter()
    for start in range(0, last, PAGE):
        with connection.cursor() as cursor:
            cursor.execute(READ, [start, start + PAGE])
            for row in cursor.fetchall():
                hashlib.sha256(row[4].encode()).hexdigest()
    return last / (time.perf_counter() - started)


def sealing_delays_ms() -> list[float]:
    """Return, for each batch, the milliseconds from its commit until its last row was sealed."""
    from decisions.audit.sealer import Sealer
    from decisions.models import AuditEntry, AuditSeal

    sealer, stop, delays = Sealer(), threading.Event(), []
    sealer.start()
    started, number = time.perf_counter(), 0
    unsealed: dict[int, float] = {}
    while time.perf_counter() - started < LOAD_S or (unsealed and not stop.is_set()):
        if time.perf_counter() - started < LOAD_S and time.perf_counter() - started >= number * (
            BATCH_ROWS / PER_SECOND
        ):
            write(BATCH_ROWS)
            number += 1
            unsealed[AuditEntry.objects.latest("id").id] = time.perf_counter()
        done = AuditSeal.objects.filter(entry_id__in=list(unsealed)).values_list("entry_id")
        for (entry_id,) in done:
            delays.append((time.perf_counter() - unsealed.pop(entry_id)) * 1000)
        time.sleep(0.005)
    sealer.stop()
    return delays


def main() -> None:
    """Measure and report."""
    home = tempfile.mkdtemp(prefix="cty-bench-")
    with served(DurablePostgresServer, PostgresServer.make) as server:
        os.environ["DATABASE_URL"] = server.url
        os.environ["CONTINUITY_HOME"] = home
        os.environ["CONTINUITY_SECRET_KEYS"] = "bench-" + "k" * 40
        os.environ["REDIS_URL"] = "redis://127.0.0.1:1/0"
        os.environ["CONTINUITY_LOG_LEVEL"] = "ERROR"
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        sys.argv[1:1] = ["mcp_stdio"]  # the MCP server's settings: no admin to load
        measure()
    shutil.rmtree(home)


def measure() -> None:
    """Measure in the current environment."""
    import django

    django.setup()

    from django.core.management import call_command

    from decisions.audit.sealer import Sealer

    call_command("migrate", verbosity=0)
    # One sealer for all rounds: a new one reads again what was sealed since the last checkpoint.
    sealed = partial(sealed_per_s, Sealer().seal_all)
    seal = alternate({"ours": sealed, "floor": inserted_per_s}, ROUNDS)
    check = alternate({"ours": checked_per_s, "floor": read_per_s}, ROUNDS)
    measurements: dict[str, Any] = {
        "sealed": {name: spread(values) for name, values in seal.items()},
        "sealed_ratio": ratio(seal["ours"], seal["floor"]),
        "checked": {name: spread(values) for name, values in check.items()},
        "checked_ratio": ratio(check["ours"], check["floor"]),
    }
    report(
        "audit_log",
        unit="rows/s",
        rows=ROWS,
        **measurements,
        delay_ms_at_500_per_s=spread(sealing_delays_ms()),
        goals={"sealed": ">= 500", "checked": ">= 50000", "delay_ms": "<= 1000"},
    )


if __name__ == "__main__":
    main()
