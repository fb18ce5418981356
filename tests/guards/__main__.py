"""Remove each protection in a copy of the tree, and require that its test fails.

    python -m tests.guards [NAME …]

First all named tests have to pass unchanged. Then each guard runs in a copy, with a database of its
own: its test has to fail in its call phase. A patch that does not fit, a test that cannot run and a
test that passes are errors; the exit code is then 1.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.guards.catalogue import guards_by_part
from tests.guards.guard import Guard, StalePatch
from tests.services import PostgresServer, postgres_server, redis_server

ROOT = Path(__file__).parent.parent.parent
PROCESSES = 3
TIMEOUT_S = 100
FIRST_WORKER = "gw0"  # of pytest-xdist; the others copy the database that it migrates


@dataclass(frozen=True)
class Verdict:
    """What became of one guard on one database."""

    guard: Guard
    database: str
    error: str  # empty: the test failed without the protection, as it should
    seconds: float


@dataclass
class Bench:
    """The servers, and copies of the tree that are free."""

    folder: Path
    postgres: PostgresServer
    redis_url: str
    free: queue.Queue[int] = field(default_factory=queue.Queue)

    def environment(self, database: str, slot: str, **more: str) -> dict[str, str]:
        """Return the environment of a test run with a home and a database of its own."""
        (self.folder / slot).mkdir(exist_ok=True)
        values = {
            "CONTINUITY_TEST_ROOT": str(self.folder / slot),
            "CONTINUITY_SECRET_KEYS": "tests-only-" + "k" * 40,
            "REDIS_URL": self.redis_url,
            "PYTHONUTF8": "1",
            **more,
        }
        inherited = {
            k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "PYTEST_ADDOPTS")
        }
        if database == "postgresql":
            values["DATABASE_URL"] = self.postgres.url.rpartition("/")[0] + f"/{slot}"
        return {**inherited, **values, "CONTINUITY_TEST_DATABASE": database}

    def fresh_database(self, database: str, slot: str) -> None:
        """Give a slot a copy of the migrated database, without a row."""
        if database == "sqlite":
            home = self.folder / slot / "main"
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            for file in (self.folder / "continuity" / FIRST_WORKER).glob("test.sqlite3*"):
                shutil.copy(file, home)
            return
        url = self.postgres.url.rpartition("/")[0] + "/postgres"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "test_{slot}" WITH (FORCE)')
            connection.execute(
                f'CREATE DATABASE "test_{slot}" TEMPLATE "test_continuity_{FIRST_WORKER}"'
            )


def main(names: Sequence[str]) -> int:
    """Run the guards of these names, or all; print a table; return the exit code."""
    parts = guards_by_part()
    chosen = [
        guard for guards in parts.values() for guard in guards if guard.name in names or not names
    ]
    if missing := {*names} - {guard.name for guard in chosen}:
        say(f"There is no guard named {', '.join(sorted(missing))}.")
        return 1
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="cty-guards-", dir=fast_folder()) as folder,
        postgres_server() as postgres,
        redis_server() as redis,
    ):
        bench = Bench(Path(folder), postgres, redis.url)
        say(f"{len(chosen)} guards. First their tests, unchanged:")
        if broken := failing_unchanged(bench, chosen):
            say("These tests fail with the protection in place:", *sorted(broken))
            return 1
        for number in range(PROCESSES):
            copy_tree(bench.folder / f"tree{number}")
            bench.free.put(number)
        with ThreadPoolExecutor(PROCESSES) as pool:
            runs = [(guard, database) for guard in chosen for database in guard.databases]
            verdicts = list(pool.map(lambda run: tried(bench, *run), runs))
    return reported(verdicts, parts, time.monotonic() - began)


def failing_unchanged(bench: Bench, guards: Iterable[Guard]) -> set[str]:
    """Run every named test once in the tree as it is; return those that did not pass."""
    failed: set[str] = set()
    for database in ("postgresql", "sqlite"):
        tests = sorted({guard.red for guard in guards if database in guard.databases})
        if not tests:
            continue
        workers = ("-n", str(min(PROCESSES, len(tests))))
        results = pytest(bench, ROOT, database, "continuity", tests, *workers, limit_s=900)
        failed |= {f"{test} ({database})" for test in tests if results.get(test) != "passed"}
        say(f"  {database}: {len(tests)} tests")
    return failed


def tried(bench: Bench, guard: Guard, database: str) -> Verdict:
    """Run a guard's test without its protection."""
    began = time.monotonic()
    number = bench.free.get()
    tree, slot = bench.folder / f"tree{number}", f"slot{number}"
    try:
        for patch in guard.patches:
            patch.apply(tree)
        bench.fresh_database(database, slot)
        sql = {"CONTINUITY_TEST_GUARD_SQL": guard.statement(database)}
        results = pytest(bench, tree, database, slot, [guard.red], limit_s=TIMEOUT_S, **sql)
        outcome = results.get(guard.red, "did not run")
        error = "" if outcome == "failed" else f"the test {outcome}: {guard.red}"
    except (StalePatch, SyntaxError, OSError, psycopg.Error) as problem:
        error = str(problem)
    finally:
        for patch in guard.patches:
            shutil.copy(ROOT / patch.file, tree / patch.file)
        bench.free.put(number)
    verdict = Verdict(guard, database, error, time.monotonic() - began)
    say(f"  {'NOT' if error else 'ok '} {guard.name} ({database}, {verdict.seconds:.0f} s) {error}")
    return verdict


def pytest(
    bench: Bench,
    root: Path,
    database: str,
    slot: str,
    tests: Sequence[str],
    *options: str,
    limit_s: float,
    **more: str,
) -> dict[str, str]:
    """Run tests and return the outcome of each that ran: passed, failed or could not be set up."""
    results = bench.folder / f"{slot}-results"
    results.unlink(missing_ok=True)
    results.touch()
    environment = bench.environment(
        database, slot, CONTINUITY_TEST_GUARD_RESULTS=str(results), **more
    )
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "tests.guards.plugin", "--reuse-db"),
        *("--timeout", "60", *options, *tests),
    ]
    process = subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdout=(bench.folder / f"{slot}-output").open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
    return outcomes(results)


def outcomes(results: Path) -> dict[str, str]:
    """Read what the plugin wrote; a failure outside the call phase is no failure of the test."""
    found: dict[str, str] = {}
    for line in map(json.loads, results.read_text().splitlines()):
        failed_early = line["when"] == "setup" and line["outcome"] == "failed"
        word = "could not be set up" if failed_early else line["outcome"]
        if line["when"] != "teardown":
            found[line["test"]] = word
    return found


def copy_tree(to: Path) -> None:
    """Copy the files of the working tree that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, os.fsdecode(files).split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    (to / ".venv").symlink_to(ROOT / ".venv")


def fast_folder() -> str | None:
    """Return /dev/shm, which spares the disk, if there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def reported(
    verdicts: Sequence[Verdict], parts: dict[str, tuple[Guard, ...]], seconds: float
) -> int:
    """Print the sums by part and every guard that nobody noticed; return the exit code."""
    wrong = [verdict for verdict in verdicts if verdict.error]
    say("")
    for part, guards in parts.items():
        own = [verdict for verdict in verdicts if verdict.guard in guards]
        if own:
            noticed = sum(not verdict.error for verdict in own)
            say(f"{part:12} {noticed:4} of {len(own)} removals noticed")
    for verdict in wrong:
        say(f"NOT NOTICED  {verdict.guard.name} ({verdict.database}): {verdict.error}")
    say(f"{len(verdicts) - len(wrong)} of {len(verdicts)} in {seconds / 60:.1f} minutes")
    return 1 if wrong else 0


def say(*lines: str) -> None:
    """Print lines at once."""
    print(*lines, sep="\n", flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
