"""Remove each protection in a copy of the tree, and require that its test fails.

    python -m tests.guards [NAME …]

A mutation that does not fit the code ends the run at once, with the guard's name. Then all named
tests have to pass unchanged, and each guard runs in a copy, with a database that is empty and
unchanged: its test has to fail in its call phase. A test that is skipped, that cannot run, that
passes or that runs into its time limit is an error; the exit code is then 1. One line for each
guard shows with which message its test failed.
"""

from __future__ import annotations

import contextlib
import json
import os
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

from tests.guards.catalogue import guards_by_part, problems
from tests.guards.guard import Guard
from tests.guards.mutation import StaleMutation
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
class Result:
    """The result of one guard on one database."""

    guard: Guard
    database: str
    noticed: bool
    message: str  # with which the test failed, or why that is not known


@dataclass(frozen=True)
class TreeCopy:
    """A copy of the tree with its fork server; its name is also that of its databases."""

    name: str
    tree: Path
    process: subprocess.Popen[str]
    usable_databases: set[str] = field(default_factory=set)  # migrated, unchanged and empty


@dataclass
class Services:
    """The database servers, and the copies of the tree in which no test runs."""

    folder: Path
    postgres: PostgresServer
    redis_url: str
    free_copies: queue.Queue[TreeCopy] = field(default_factory=queue.Queue)

    @property
    def modules(self) -> Path:
        """The file with the names of the modules that a fork server imports."""
        return self.folder / "modules.json"

    def environment(self, database: str, home: str, **more: str) -> dict[str, str]:
        """Return the environment of a test run with a home and a database of its own."""
        (self.folder / home).mkdir(exist_ok=True)
        values = {
            "CONTINUITY_TEST_ROOT": str(self.folder / home),
            "CONTINUITY_SECRET_KEYS": "tests-only-" + "k" * 40,
            "REDIS_URL": self.redis_url,
            "PYTHONUTF8": "1",
            **more,
        }
        inherited = {
            k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "PYTEST_ADDOPTS")
        }
        if database == "postgresql":
            values["DATABASE_URL"] = self.postgres.url.rpartition("/")[0] + f"/{home}"
        return {**inherited, **values, "CONTINUITY_TEST_DATABASE": database}

    def new_database(self, database: str, name: str) -> None:
        """Make a new copy of the migrated database, without a row, for a copy of the tree."""
        if database == "sqlite":
            home = self.folder / name / "main"
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
            connection.execute(f'DROP DATABASE IF EXISTS "test_{name}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "test_{name}" TEMPLATE "{template}"')


def main(names: Sequence[str]) -> int:
    """Run the guards of these names, or all; print a table; return the exit code."""
    parts = guards_by_part()
    chosen = [
        guard for guards in parts.values() for guard in guards if guard.name in names or not names
    ]
    if missing := {*names} - {guard.name for guard in chosen}:
        say(f"There is no guard named {', '.join(sorted(missing))}.")
        return 1
    if stale := problems(chosen):
        say("These guards do not fit the code:", *stale)
        return 1
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="cty-guards-", dir=fast_folder()) as folder,
        postgres_server() as postgres,
        redis_server() as redis,
        contextlib.ExitStack() as stack,
    ):
        services = Services(Path(folder), postgres, redis.url)
        say(f"{len(chosen)} guards. First their tests, with all protections in place:")
        broken = {name: failing_unchanged(services, name, chosen) for name in DATABASES}
        for number in range(PROCESSES):
            copy_tree(services.folder / f"tree{number}")
            services.free_copies.put(stack.enter_context(fork_server(services, number)))
        say("Then each without its protection:")
        with ThreadPoolExecutor(PROCESSES) as pool:
            runs = [(guard, name) for guard in chosen for name in guard.databases]
            results = list(
                pool.map(lambda run: run_guard(services, run[0], run[1], broken[run[1]]), runs)
            )
    return print_report(results, parts, time.monotonic() - began)


def failing_unchanged(services: Services, database: str, guards: Iterable[Guard]) -> set[str]:
    """Run the tests of a database once in the tree as it is; return those that did not pass."""
    tests = sorted({guard.failing_test for guard in guards if database in guard.databases})
    if not tests:
        return set()
    began = time.monotonic()
    outcomes_file = services.folder / "outcomes"
    outcomes_file.touch()
    arguments = ["-n", str(min(PROCESSES, len(tests))), *OPTIONS, *tests]
    environment = services.environment(
        database,
        "continuity",
        CONTINUITY_TEST_GUARD_RESULTS=str(outcomes_file),
        CONTINUITY_TEST_GUARD_MODULES=str(services.modules),
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    for line in ran.stdout.splitlines():  # one unknown test keeps pytest from running any
        if line.startswith("ERROR: not found"):
            say(f"  {line}")
    found = outcomes(outcomes_file)
    outcomes_file.unlink()
    say(f"  {database}: {len(tests)} tests, {time.monotonic() - began:.0f} s")
    return {test for test in tests if found.get(test, ("",))[0] != "passed"}


@contextlib.contextmanager
def fork_server(services: Services, number: int) -> Iterator[TreeCopy]:
    """Start the fork server of a copy of the tree."""
    tree = services.folder / f"tree{number}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.guards.fork_server", str(services.modules)],
        cwd=tree,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield TreeCopy(f"copy{number}", tree, process)
        process.terminate()


def run_guard(services: Services, guard: Guard, database: str, broken: set[str]) -> Result:
    """Run a guard's test without its protection."""
    if guard.failing_test in broken:
        return Result(
            guard, database, False, f"the test fails without a removal: {guard.failing_test}"
        )
    copy = services.free_copies.get()
    noticed = False
    try:
        for mutation in guard.mutations:
            mutation.apply(copy.tree)
        if database not in copy.usable_databases:
            services.new_database(database, copy.name)
        copy.usable_databases.discard(database)
        noticed, message = run_test(services, copy, guard, database)
    except (StaleMutation, SyntaxError, OSError, psycopg.Error) as problem:
        message = str(problem)
    finally:
        for mutation in guard.mutations:
            shutil.copy(ROOT / mutation.file, copy.tree / mutation.file)
        services.free_copies.put(copy)
    say(f"  {'' if noticed else 'NOT NOTICED '}{guard.name} ({database}): {message[:100]}")
    return Result(guard, database, noticed, message)


def run_test(services: Services, copy: TreeCopy, guard: Guard, database: str) -> tuple[bool, str]:
    """Run the guard's test in a copy of the tree; return whether it failed, and its message."""
    outcomes_file = services.folder / f"{copy.name}-outcomes"
    outcomes_file.unlink(missing_ok=True)
    outcomes_file.touch()
    environment = services.environment(
        database,
        copy.name,
        CONTINUITY_TEST_GUARD_RESULTS=str(outcomes_file),
        CONTINUITY_TEST_GUARD_SQL=guard.statements.get(database, ""),
    )
    request = {
        "arguments": [*OPTIONS, guard.failing_test],
        "environment": environment,
        "output": str(services.folder / f"{copy.name}-output"),
        "limit_s": LIMIT_S,
    }
    assert copy.process.stdin is not None
    assert copy.process.stdout is not None
    copy.process.stdin.write(json.dumps(request) + "\n")
    copy.process.stdin.flush()
    copy.process.stdout.readline()
    outcome, message = outcomes(outcomes_file).get(guard.failing_test, ("did not run", ""))
    if guard.mutations and was_torn_down(outcomes_file):
        copy.usable_databases.add(database)
    if outcome != "failed" or "Timeout (>" in message:
        return False, f"{guard.failing_test} {outcome} {message}"
    return True, message


def was_torn_down(file: Path) -> bool:
    """Return whether the test ran to the end of its teardown, which empties the database."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return any((line["when"], line["outcome"]) == ("teardown", "passed") for line in lines)


def outcomes(file: Path) -> dict[str, tuple[str, str]]:
    """Return outcome and message of each test; a failure in its set-up is not one of the test."""
    found: dict[str, tuple[str, str]] = {}
    for line in map(json.loads, file.read_text().splitlines()):
        failed_early = line["when"] == "setup" and line["outcome"] == "failed"
        word = "could not be set up" if failed_early else line["outcome"]
        if line["when"] != "teardown":
            found[line["test"]] = word, line["message"]
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


def print_report(
    results: Sequence[Result], parts: dict[str, tuple[Guard, ...]], seconds: float
) -> int:
    """Print the sums by part and every removal that no test noticed; return the exit code."""
    wrong = [result for result in results if not result.noticed]
    say("")
    for part, guards in parts.items():
        own = [result for result in results if result.guard in guards]
        if own:
            noticed = sum(result.noticed for result in own)
            say(f"{part:12} {noticed:4} of {len(own)} removals noticed")
    for result in wrong:
        say(f"NOT NOTICED  {result.guard.name} ({result.database}): {result.message}")
    say(f"{len(results) - len(wrong)} of {len(results)} in {seconds / 60:.1f} minutes")
    return 1 if wrong else 0


def say(*lines: str) -> None:
    """Print lines at once."""
    print(*lines, sep="\n", flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
