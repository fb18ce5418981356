"""Measure what the tests cost: `make test-costs` loads this plugin and prints its tables.

Each worker of pytest-xdist records the wall time and the CPU time of each test and fixture, and the
time it spends in some functions. A thread of the first process samples the CPU time of all
descendants each half second and adds it up by kind of program; a process that lives shorter counts
in the line "children" of the worker that started it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

OPTION = "--costs"
SAMPLE_S = 0.5
FILES_SHOWN = 40
FIXTURES_SHOWN = 20
# The first match names the kind of a process; its command line is searched.
KINDS = (
    ("Chromium", ("headless_shell", "chrome", "chromium")),
    ("Playwright's driver", ("playwright/driver",)),
    ("PostgreSQL", ("postgres",)),
    ("Redis", ("redis-server", "valkey-server")),
    # The fork server's command line is that of its children too.
    ("the product's processes", ("manage.py", "celery", "tests.faults.fork_server")),
    # pytest-xdist starts its workers with this line.
    ("test workers", ("exec(eval(sys.stdin.readline()))", "pytest")),
    ("other Python processes", ("python",)),
)


class WorkerCosts:
    """The costs of the tests that one process runs."""

    def __init__(self) -> None:
        self.files: dict[str, Counter[str]] = defaultdict(Counter)
        self.fixtures: dict[str, Counter[str]] = defaultdict(Counter)
        self.functions: dict[str, Counter[str]] = defaultdict(Counter)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Add a test's time to its file."""
        with timed(self.files[item.path.relative_to(item.config.rootpath).as_posix()]):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        """Add the time of a fixture up to its yield."""
        with timed(self.fixtures[fixturedef.argname]):
            return (yield)

    def watch(self, owner: Any, name: str, label: str) -> None:
        """Add the time of each call of a function in the main thread."""
        original = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return original(*args, **kwargs)
            with timed(self.functions[label]):
                return original(*args, **kwargs)

        setattr(owner, name, watched)

    def result(self) -> dict[str, Any]:
        """Return everything as JSON."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "files": self.files,
            "fixtures": self.fixtures,
            "functions": self.functions,
            "children": children.ru_utime + children.ru_stime,
        }


class timed:  # noqa: N801  (used as a function)
    """Add one call, its wall seconds and this process's CPU seconds to a counter."""

    def __init__(self, counter: Counter[str]) -> None:
        self.counter = counter

    def __enter__(self) -> None:
        self.began = time.monotonic(), time.process_time()

    def __exit__(self, *_: object) -> None:
        wall, cpu = time.monotonic() - self.began[0], time.process_time() - self.began[1]
        counts: dict[str, Any] = {"number": 1, "wall": wall, "cpu": cpu}
        self.counter.update(counts)


class ProcessSampler(threading.Thread):
    """Add up the CPU seconds of this process's descendants by kind of program."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stopped = threading.Event()
        self._seen: dict[tuple[int, float], tuple[str, float]] = {}

    def run(self) -> None:
        """Sample until stopped."""
        me = psutil.Process()
        while not self.stopped.wait(SAMPLE_S):
            for process in [me, *me.children(recursive=True)]:
                try:
                    key = process.pid, process.create_time()
                    kind = self._seen[key][0] if key in self._seen else kind_of(process)
                    times = process.cpu_times()
                    self._seen[key] = kind, times.user + times.system
                except psutil.Error:
                    continue

    def by_kind(self) -> dict[str, tuple[int, float]]:
        """Return the number of processes and the CPU seconds of each kind."""
        sums: dict[str, tuple[int, float]] = {}
        for kind, seconds in self._seen.values():
            number, total = sums.get(kind, (0, 0.0))
            sums[kind] = number + 1, total + seconds
        return sums


def kind_of(process: psutil.Process) -> str:
    """Return the kind of a process by its command line."""
    line = " ".join(process.cmdline())
    return next((kind for kind, words in KINDS if any(word in line for word in words)), "others")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the option, which xdist's workers inherit."""
    parser.addoption(OPTION, metavar="FOLDER", help="write what the tests cost to this folder")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to measure, in each worker and in the first process."""
    folder = config.getoption(OPTION)
    if not folder:
        return
    if not hasattr(config, "workerinput"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        for old in Path(folder).glob("*.json"):
            old.unlink()
        sampler = ProcessSampler()
        sampler.start()
        config.stash[_sampler] = sampler, time.monotonic()
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        costs = WorkerCosts()
        config.pluginmanager.register(costs)
        from tests import emptying

        costs.watch(emptying, "empty", "emptying the database")
        costs.watch(time, "sleep", "time.sleep")
        costs.watch(subprocess.Popen, "__init__", "starting a process (until exec)")
        costs.watch(subprocess.Popen, "wait", "waiting for a process")
        config.stash[_costs] = costs


_sampler = pytest.StashKey[tuple[ProcessSampler, float]]()
_costs = pytest.StashKey[WorkerCosts]()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write this process's figures."""
    folder = session.config.getoption(OPTION)
    if folder and (costs := session.config.stash.get(_costs, None)):
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        (Path(folder) / f"{worker}.json").write_text(json.dumps(costs.result()))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the tables; the workers have ended by now."""
    if _sampler not in config.stash:
        return
    sampler, began = config.stash[_sampler]
    sampler.stopped.set()
    sampler.join()
    workers = [
        json.loads(file.read_text()) for file in Path(config.getoption(OPTION)).glob("*.json")
    ]
    terminalreporter.section("costs")
    for line in tables(workers, sampler.by_kind(), time.monotonic() - began):
        terminalreporter.line(line)


def tables(
    workers: list[dict[str, Any]], kinds: dict[str, tuple[int, float]], wall: float
) -> Iterator[str]:
    """Return the lines of the tables, in Markdown."""
    children = sum(worker["children"] for worker in workers)
    total = sum(seconds for _, seconds in kinds.values())
    yield f"{wall / 60:.1f} minutes, {total / 60:.1f} CPU minutes in processes that were sampled;"
    yield f"{children / 60:.1f} CPU minutes in children of test workers that have ended"
    yield from ("", "| kind of process | processes | CPU s |", "|---|---|---|")
    for kind, (number, seconds) in sorted(kinds.items(), key=lambda one: -one[1][1]):
        yield f"| {kind} | {number} | {seconds:.0f} |"
    for part, title, shown in (
        ("functions", "function, in the tests' thread", FILES_SHOWN),
        ("fixtures", "fixture, until its yield", FIXTURES_SHOWN),
        ("files", "file", FILES_SHOWN),
    ):
        yield from ("", f"| {title} | calls | wall s | own CPU s |", "|---|---|---|---|")
        for name, sums in added(worker[part] for worker in workers)[:shown]:
            yield f"| {name} | {sums['number']} | {sums['wall']:.0f} | {sums['cpu']:.0f} |"


def added(parts: Iterator[dict[str, dict[str, float]]]) -> list[tuple[str, Counter[str]]]:
    """Add up the figures of all workers; the longest wall time first."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for part in parts:
        for name, figures in part.items():
            sums[name].update(figures)
    return sorted(sums.items(), key=lambda one: -one[1]["wall"])
