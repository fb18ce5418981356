"""Test a thousand event stream readers on one web process while another process writes events to
the embedded database: each reader gets every event exactly once and in order.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.services import free_port
from tests.support.installation.temporary_home import RunningCommand, TemporaryHome, temporary_home
from tests.trials.event_fanout.readers import (
    EventStreamReader,
    EventStreamReaders,
    raise_file_limit,
)

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.timeout(300)]
LISTENERS = 1000
POOL_FDS = 60  # files that the database threads keep open


@pytest.fixture
def home(tmp_path: Path) -> Iterator[TemporaryHome]:
    """Create a separate home with the tests' Redis and a rate limit above what the readers need."""
    with temporary_home(
        tmp_path,
        REDIS_URL=os.environ["REDIS_URL"],
        CONTINUITY_REDIS_PREFIX=f"{tmp_path.name}:",
        CONTINUITY_TEMPLATE_MODULES="tests.support.runs.step_template",
        CONTINUITY_THROTTLE_PER_SECOND="100000",
    ) as created:
        yield created


class Web:
    """A web process on its own port."""

    def __init__(self, home: TemporaryHome) -> None:
        self.home, self.port = home, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = home.run("create_token", "--trust", "local", "readers").stdout.split()[-1]
        self.started = self.start()

    def start(self) -> RunningCommand:
        """Start the process with a usual limit of open files and wait until it serves."""
        serve = shlex.join([sys.executable, "manage.py", "serve", "--port", str(self.port)])
        limit = f"ulimit -S -n 256; exec {serve}"
        started = RunningCommand(["/bin/bash", "-c", limit], self.home.env)
        started.wait_for_line("Serving on")
        return started

    @property
    def process(self) -> psutil.Process:
        """Return the running process."""
        return psutil.Process(self.started.process.pid)


@pytest.fixture
def web(home: TemporaryHome) -> Iterator[Web]:
    """Run a web process for the duration of a test."""
    created = Web(home)
    yield created
    if created.started.process.poll() is None:
        created.started.stop(signal.SIGTERM)


class Writer:
    """The process that writes the events."""

    def __init__(self, home: TemporaryHome, runs: int, events: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.runs.event_writer", str(runs), str(events)],
            cwd=ROOT,
            env=home.env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.run_ids: list[str] = json.loads(self._line())

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()

    def start_writing(self) -> None:
        """Start the writing."""
        assert self._process.stdin
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, int]:
        """Wait until the process ends and return each run's last seq."""
        last_seqs: dict[str, int] = json.loads(self._line())
        self._process.communicate(timeout=20)
        return last_seqs


def readers_of(web: Web, run_ids: list[str], number: int = LISTENERS) -> list[EventStreamReader]:
    raise_file_limit(number + 200)
    return [
        EventStreamReader(web.url, web.token, f"/api/v1/runs/{run_ids[n % len(run_ids)]}/events")
        for n in range(number)
    ]


def follow(
    web: Web, writer: Writer, during: Callable[[EventStreamReaders], None] | None = None
) -> list[EventStreamReader]:
    """Run all readers while the writer writes, check what each got, and return the readers."""

    async def read_all() -> EventStreamReaders:
        all_readers = EventStreamReaders(readers_of(web, writer.run_ids))
        all_readers.start()
        await all_readers.wait_until(lambda reader: reader.seqs[:1] == [1])
        writer.start_writing()
        writing = asyncio.create_task(asyncio.to_thread(writer.end))
        while during is not None and not writing.done():
            during(all_readers)
            await asyncio.sleep(0.05)
        last = await writing
        await all_readers.wait_until(
            lambda reader: reader.seqs[-1] == last[reader._path.split("/")[4]]
        )
        await asyncio.sleep(0.5)  # time for a duplicate event to arrive
        await all_readers.stop()
        return all_readers

    all_readers = asyncio.run(read_all())
    incomplete = [
        reader
        for reader in all_readers.readers
        if reader.seqs != list(range(1, reader.seqs[-1] + 1))
    ]
    assert incomplete == []
    return list(all_readers.readers)


@pytest.mark.slow
def test_a_thousand_readers_of_one_run_get_every_event_once(web: Web, home: TemporaryHome) -> None:
    threads = web.process.num_threads()
    counts: list[int] = []
    readers = follow(web, Writer(home, 1, 300), lambda _: counts.append(web.process.num_threads()))
    assert {len(reader.seqs) for reader in readers} == {302}
    assert {reader.connections for reader in readers} == {1}
    # The thread pools have a fixed size; a reader has no thread of its own.
    assert max(counts) <= threads + 40


@pytest.mark.slow
def test_a_thousand_runs_with_one_reader_each_deliver_every_event(
    web: Web, home: TemporaryHome
) -> None:
    follow(web, Writer(home, LISTENERS, 2000))


@pytest.mark.slow
def test_readers_that_disconnect_and_reconnect_at_once_miss_no_event(
    web: Web, home: TemporaryHome
) -> None:
    rng = random.Random(5)

    def disconnect_some(all_readers: EventStreamReaders) -> None:
        for reader in rng.sample(list(all_readers.readers), 40):
            reader.disconnect()

    readers = follow(web, Writer(home, 5, 400), disconnect_some)
    assert sum(reader.connections for reader in readers) > LISTENERS + 200


@pytest.mark.slow
def test_readers_miss_no_event_when_a_web_process_is_replaced(
    web: Web, home: TemporaryHome
) -> None:
    written = [0]
    durations: list[float] = []

    def replace(all_readers: EventStreamReaders) -> None:
        written[0] += 1
        if written[0] == 2:
            started = time.monotonic()
            assert web.started.stop(signal.SIGTERM) in (0, -signal.SIGTERM)
            durations.append(time.monotonic() - started)
            assert "exceeded" not in web.started.output
            web.started = web.start()

    readers = follow(web, Writer(home, 3, 1500), replace)
    assert durations
    assert all(reader.connections >= 2 for reader in readers)


@pytest.mark.slow
def test_readers_that_disconnect_leave_no_resources(web: Web, home: TemporaryHome) -> None:
    writer = Writer(home, 1, 1)
    open_before = web.process.num_fds()

    async def read_all() -> None:
        all_readers = EventStreamReaders(readers_of(web, writer.run_ids, 300))
        all_readers.start()
        await all_readers.wait_until(lambda reader: reader.seqs == [1])
        assert web.process.num_fds() >= open_before + 300
        await all_readers.stop()

    asyncio.run(read_all())
    deadline = time.monotonic() + 20
    while web.process.num_fds() > open_before + POOL_FDS and time.monotonic() < deadline:
        time.sleep(0.05)
    assert web.process.num_fds() <= open_before + POOL_FDS
    writer.start_writing()
    writer.end()
