"""Remove each protection in a copy of the tree, and require that its test fails.

    python -m tests.guards [NAME …]

First all named tests have to pass unchanged. Then each guard runs in a copy, with a database of its
own: its test has to fail in its call phase. A patch that does not fit, a test that cannot run and a
test that passes are errors; the exit code is then 1.
"""

from __future__ import annotations

import contextlib
import json
import os
import py_compile
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.guards.catalogue import guards_by_part
from tests.guards.guard import Guard, StalePatch
from tests.services import PostgresServer, postgres_server, redis_server

ROOT = Path(__file__).parent.parent.parent
DATABASES = ("postgresql", "sqlite")
PROCESSES = 3
TIMEOUT_S = 60  # of a test
LIMIT_S = 100  # of its process
OPTIONS = (
    *("-q", "-p", "tests.guards.plugin", "--reuse-db", "--timeout", str(TIMEOUT_S)),
    # Modules that the fork server has imported; they hold no assertions of tests.
    *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
)
FIRST_WORKER = "gw0"  # of pytest-xdist; the others copy the database that it migrates


@dataclass(frozen=True)
class Verdict:
    """What became of one guard on one database."""

    guard: Guard
    database: str
    error: str  # empty: the test failed without the protection, as it should


@dataclass(frozen=True)
class Slot:
    """A copy of the tree with its fork server; its name is also that of its database."""

    name: str
    tree: Path
    process: subprocess.Popen[str]


@dataclass
class Bench:
    """The servers, and the slots that are free."""

    folder: Path
    postgres: PostgresServer
    redis_url: str
    free: queue.Queue[Slot] = field(default_factory=queue.Queue)

    @property
    def modules(self) -> Path:
        """The file with the names of the modules that a fork server imports."""
        return self.folder / "modules.json"

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
            for file in (self.folder / "continuity" / FIRST_WORKER).glob("*.sqlite3*"):
                shutil.copy(file, home / file.name.replace(f"_{FIRST_WORKER}", ""))
            return
        url = self.postgres.url.rpartition("/")[0] + "/postgres"
        template = f"test_continuity_{FIRST_WORKER}"
        with psycopg.connect(url, autocommit=True) as connection:
            known = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(known, [template]).fetchone() is None:
                return  # none of the chosen tests uses it
            connection.execute(f'DROP DATABASE IF EXISTS "test_{slot}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "test_{slot}" TEMPLATE "{template}"')


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
        contextlib.ExitStack() as stack,
    ):
        bench = Bench(Path(folder), postgres, redis.url)
        say(f"{len(chosen)} guards. First their tests, with all protections in place:")
        broken = {name: failing_unchanged(bench, name, chosen) for name in DATABASES}
        for number in range(PROCESSES):
            copy_tree(bench.folder / f"tree{number}")
            bench.free.put(stack.enter_context(fork_server(bench, number)))
        say("Then each without its protection:")
        with ThreadPoolExecutor(PROCESSES) as pool:
            runs = [(guard, name) for guard in chosen for name in guard.databases]
            verdicts = list(
                pool.map(lambda run: tried(bench, run[0], run[1], broken[run[1]]), runs)
            )
    return reported(verdicts, parts, time.monotonic() - began)


def failing_unchanged(bench: Bench, database: str, guards: Iterable[Guard]) -> set[str]:
    """Run the tests of a database once in the tree as it is; return those that did not pass."""
    tests = sorted({guard.red for guard in guards if database in guard.databases})
    if not tests:
        return set()
    began = time.monotonic()
    results = bench.folder / "results"
    results.touch()
    arguments = ["-n", str(min(PROCESSES, len(tests))), *OPTIONS, *tests]
    environment = bench.environment(
        database,
        "continuity",
        CONTINUITY_TEST_GUARD_RESULTS=str(results),
        CONTINUITY_TEST_GUARD_MODULES=str(bench.modules),
    )
    subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        check=False,
    )
    found = outcomes(results)
    results.unlink()
    say(f"  {database}: {len(tests)} tests, {time.monotonic() - began:.0f} s")
    return {test for test in tests if found.get(test) != "passed"}


@contextlib.contextmanager
def fork_server(bench: Bench, number: int) -> Iterator[Slot]:
    """Start the fork server of a copy of the tree."""
    tree = bench.folder / f"tree{number}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.guards.fork_server", str(bench.modules)],
        cwd=tree,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Slot(f"slot{number}", tree, process)
        process.terminate()


def tried(bench: Bench, guard: Guard, database: str, broken: set[str]) -> Verdict:
    """Run a guard's test without its protection."""
    if guard.red in broken:
        return Verdict(guard, database, f"the test fails without a removal: {guard.red}")
    slot = bench.free.get()
    try:
        for patch in guard.patches:
            patch.apply(slot.tree)
        bench.fresh_database(database, slot.name)
        outcome = run_in(bench, slot, guard, database)
        error = "" if outcome == "failed" else f"the test {outcome}: {guard.red}"
    except (StalePatch, py_compile.PyCompileError, OSError, psycopg.Error) as problem:
        error = str(problem)
    finally:
        for patch in guard.patches:
            shutil.copy(ROOT / patch.file, slot.tree / patch.file)
        bench.free.put(slot)
    if error:
        say(f"  NOT NOTICED {guard.name} ({database}): {error}")
    return Verdict(guard, database, error)


def run_in(bench: Bench, slot: Slot, guard: Guard, database: str) -> str:
    """Run the guard's test in a slot and return its outcome."""
    results = bench.folder / f"{slot.name}-results"
    results.unlink(missing_ok=True)
    results.touch()
    environment = bench.environment(
        database,
        slot.name,
        CONTINUITY_TEST_GUARD_RESULTS=str(results),
        CONTINUITY_TEST_GUARD_SQL=guard.statement(database),
    )
    request = {
        "arguments": [*OPTIONS, guard.red],
        "environment": environment,
        "output": str(bench.folder / f"{slot.name}-output"),
        "limit_s": LIMIT_S,
    }
    assert slot.process.stdin is not None
    assert slot.process.stdout is not None
    slot.process.stdin.write(json.dumps(request) + "\n")
    slot.process.stdin.flush()
    slot.process.stdout.readline()
    return outcomes(results).get(guard.red, "did not run")


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
    """Print the sums by part and every removal that no test noticed; return the exit code."""
    wrong = [verdict for verdict in verdicts if verdict.error]
    say("")
    for part, guards in parts.items():
        own = [verdict for verdict in verdicts if verdict.guard in guards]
        if own:
            noticed = sum(not verdict.error for verdict in own)
            say(f"{part:12} {noticed:4} of {len(own)} removals noticed")
    say(f"{len(verdicts) - len(wrong)} of {len(verdicts)} in {seconds / 60:.1f} minutes")
    return 1 if wrong else 0


def say(*lines: str) -> None:
    """Print lines at once."""
    print(*lines, sep="\n", flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
