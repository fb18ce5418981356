"""Measure durable runs a second and the time from submit to done, against Celery with three ORM
writes on the same PostgreSQL and Redis.

Both sides: one worker process with the threads pool of 7, prefetch 1, fsync on. Floors: Celery with
persistent database connections, and stock Celery, which reconnects around every task. The floors
acknowledge late, so that a task survives its worker; our worker acknowledges early, because the
database is the queue.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.rounds import alternate, ratio, report, spread
from tests.services import DurablePostgresServer, redis_server, served

ROOT = Path(__file__).parent.parent.parent
RUNS, LATENCIES = 200, 40
FLOOR, OURS = "tests.benchmarks.floor_queue", "tests.benchmarks.our_queue"


def run_driver(module: str, env: dict[str, str]) -> float:
    """Run a driver to its end and return the number that it prints."""
    name, what, count = module.split()
    completed = subprocess.run(
        [sys.executable, "-m", name, what, count],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode != 0:
        raise RuntimeError(completed.stderr[-2000:])
    return float(completed.stdout.split()[-1])


@contextlib.contextmanager
def worker(command: list[str], env: dict[str, str]) -> Iterator[None]:
    """Run a worker for the length of the block."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=env, cwd=ROOT, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


def environment(database_url: str, redis_url: str, home: str) -> dict[str, str]:
    """Return the environment of every process of this benchmark."""
    env = {
        **os.environ,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "CONTINUITY_HOME": home,
        "CONTINUITY_SECRET_KEYS": "bench-" + "k" * 40,
        "CONTINUITY_TEMPLATE_MODULES": "tests.support.runs.step_template",
        "CONTINUITY_LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "tests.lean_settings",
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env


@contextlib.contextmanager
def workers(env: dict[str, str]) -> Iterator[dict[str, str]]:
    """Run our worker and the two floors' for the length of the block; yield the stock floor's
    environment.
    """
    stock, python = env | {"FLOOR_STOCK": "1"}, sys.executable
    migrate = [python, "manage.py", "migrate", "-v0", "--skip-checks"]
    subprocess.run(migrate, env=env, cwd=ROOT, check=True)
    subprocess.run([python, "-m", FLOOR, "prepare"], env=env, cwd=ROOT, check=True)
    celery = [python, "-m", "celery", "-A", FLOOR, "--quiet", "worker", "-P", "threads"]
    celery += ["-c", "7", "--without-gossip", "--without-mingle", "-l", "WARNING"]
    with (
        worker([python, "manage.py", "worker"], env),
        worker([*celery, "-Q", "floor"], env),
        worker([*celery, "-Q", "floor1"], stock),
    ):
        time.sleep(4)
        yield stock


def main() -> None:
    """Measure and report."""
    with (
        tempfile.TemporaryDirectory() as home,
        served(DurablePostgresServer, DurablePostgresServer.make) as postgres,
        redis_server() as redis,
    ):
        env = environment(postgres.url, redis.url, home)
        with workers(env) as stock:
            rates = alternate(
                {
                    "ours": lambda: run_driver(f"{OURS} throughput {RUNS}", env),
                    "floor": lambda: run_driver(f"{FLOOR} throughput {RUNS}", env),
                    "stock": lambda: run_driver(f"{FLOOR} throughput {RUNS}", stock),
                }
            )
            delays = alternate(
                {
                    "ours": lambda: run_driver(f"{OURS} latency {LATENCIES}", env),
                    "floor": lambda: run_driver(f"{FLOOR} latency {LATENCIES}", env),
                }
            )
    report(
        "durable_runs",
        runs_per_s={name: spread(values) for name, values in rates.items()},
        ratio_to_kept=ratio(rates["ours"], rates["floor"]),
        ratio_to_stock=ratio(rates["ours"], rates["stock"]),
        submit_to_done_p50_ms={name: spread(values) for name, values in delays.items()},
        latency_ratio=ratio(delays["ours"], delays["floor"]),
        goals={"ratio_to_kept": ">= 0.8", "ratio_to_stock": ">= 2", "latency_ratio": "<= 1.5"},
    )


if __name__ == "__main__":
    main()
