"""Deliver an event to 1000 readers of one web process, against the floor of a server that relays
messages without reading rows (floor_stream.py): from the publish until the last reader has
received the event.

Both servers hold their 1000 readers all the time; the messages alternate. Our web process reads
the event from PostgreSQL before it sends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.rounds import ratio, report, spread
from tests.services import DurablePostgresServer, free_port, redis_server, served
from tests.trials.event_fanout.readers import (
    EventStreamReader,
    EventStreamReaders,
    raise_file_limit,
)

ROOT = Path(__file__).parent.parent.parent
READERS, ROUNDS, EVENTS = 1000, 5, 8
CHANNEL = "floor"
TEXT = "x" * 200


class CountingReader(EventStreamReader):
    """A reader that counts the events it receives, the first line of the stream included."""

    async def _take(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            if line.startswith((b"id: ", b"data: ")):
                self.seqs.append(1)


@contextlib.contextmanager
def start_server(*command: str, env: dict[str, str]) -> Iterator[None]:
    """Run a server for the length of the block."""
    started = subprocess.Popen([sys.executable, *command], env=env, cwd=ROOT)
    try:
        yield
    finally:
        started.terminate()
        started.wait(20)


def environment(database_url: str, redis_url: str, home: str) -> dict[str, str]:
    """Return the environment of every process of this benchmark."""
    env = {
        **os.environ,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "CHANNEL": CHANNEL,
        "CONTINUITY_HOME": home,
        "CONTINUITY_SECRET_KEYS": "bench-" + "k" * 40,
        "CONTINUITY_TEMPLATE_MODULES": "tests.support.runs.step_template",
        "CONTINUITY_LOG_LEVEL": "WARNING",
        "CONTINUITY_THROTTLE_PER_SECOND": "100000",
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env


class MeasuredServer:
    """One server with its listeners, and the function that publishes an event to it."""

    def __init__(self, url: str, token: str, path: str, publish: Callable[[], float]) -> None:
        self.readers = [CountingReader(url, token, path) for _ in range(READERS)]
        self.stream_readers = EventStreamReaders(self.readers)
        self._publish = publish

    async def connect_all(self) -> None:
        """Connect every reader."""
        self.stream_readers.start()
        await self.stream_readers.wait_until(lambda reader: bool(reader.seqs))
        await asyncio.sleep(1)

    async def publish_event(self) -> float:
        """Publish one event; return the seconds until the last reader has received it."""
        before = [len(reader.seqs) for reader in self.readers]
        started = await asyncio.to_thread(self._publish)
        while any(len(reader.seqs) == n for reader, n in zip(self.readers, before, strict=True)):
            if time.perf_counter() - started > 10:
                raise TimeoutError("an event was lost")
            await asyncio.sleep(0.001)
        return time.perf_counter() - started


def our_server(url: str) -> MeasuredServer:
    """Return our server's side: the event is written to the database and published after the
    commit."""
    from decisions.identity.principals import create_token, local_principal
    from runs.events import notify
    from runs.lifecycle.changes import NewEvent, Transition
    from runs.lifecycle.transition import apply
    from runs.models import Run
    from runs.submission.submit import submit_run

    run_id = submit_run(
        principal=local_principal(),
        template_id="test_stepwise",
        inputs={"do": ["ok"]},
        options={"mode": "async"},
    ).run_id
    run = Run.objects.get(id=run_id)
    published_at: list[float] = []
    publish = notify._publisher.publish

    def record_publish(message: str) -> None:
        published_at.append(time.perf_counter())
        publish(message)

    notify._publisher.publish = record_publish  # type: ignore[method-assign]

    def publish_event() -> float:
        event = NewEvent("tool.update", {"text": TEXT})
        apply(Transition(run, {"status": "queued"}, events=[event]))
        return published_at[-1]

    return MeasuredServer(
        url,
        create_token(name="readers", trust="local"),
        f"/api/v1/runs/{run_id}/events",
        publish_event,
    )


def floor_server(url: str, redis_url: str) -> MeasuredServer:
    """Return the floor's side."""
    import redis

    client = redis.Redis.from_url(redis_url)

    def publish_event() -> float:
        started = time.perf_counter()
        client.publish(CHANNEL, json.dumps({"text": TEXT}))
        return started

    return MeasuredServer(url, "none", "/stream", publish_event)


async def measure(servers: dict[str, MeasuredServer]) -> dict[str, list[float]]:
    """Return deliveries per second, one number a round."""
    for server in servers.values():
        await server.connect_all()
    rates: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(ROUNDS):
        durations: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(EVENTS):
            for name, server in servers.items():
                durations[name].append(await server.publish_event())
        for name, seconds in durations.items():
            rates[name].append(READERS / sorted(seconds)[len(seconds) // 2])
    for server in servers.values():
        await server.stream_readers.stop()
    return rates


def main() -> None:
    """Measure and report."""
    raise_file_limit(3 * READERS)
    with (
        tempfile.TemporaryDirectory() as home,
        served(DurablePostgresServer, DurablePostgresServer.make) as postgres,
        redis_server() as redis,
    ):
        env = environment(postgres.url, redis.url, home)
        os.environ.update(env, DJANGO_SETTINGS_MODULE="config.settings")
        migrate = [sys.executable, "manage.py", "migrate", "-v0", "--skip-checks"]
        subprocess.run(migrate, env=env, cwd=ROOT, check=True)
        import django  # import late: the environment has to be set first

        django.setup()
        ours, floor = free_port(), free_port()
        with (
            start_server("manage.py", "serve", "--port", str(ours), env=env),
            start_server("-m", "tests.benchmarks.floor_stream", str(floor), env=env),
        ):
            servers: dict[str, Any] = {
                "ours": our_server(f"http://127.0.0.1:{ours}"),
                "floor": floor_server(f"http://127.0.0.1:{floor}", redis.url),
            }
            rates = asyncio.run(measure(servers))
    report(
        "event_stream",
        readers=READERS,
        deliveries_per_s={name: spread(values) for name, values in rates.items()},
        ratio_to_floor=ratio(rates["ours"], rates["floor"]),
        goals={"ratio_to_floor": ">= 0.8"},
    )


if __name__ == "__main__":
    main()
