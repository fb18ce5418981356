"""Deliver an event to 1000 listeners of one web process, against the floor of a server that relays
messages without reading rows (floor_stream.py): from the publish until the last listener has
received the event.

Both servers hold their 1000 listeners all the time; the messages alternate. Our web process reads
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
from tests.support.event_stream_readers import (
    EventStreamReader,
    EventStreamReaders,
    raise_file_limit,
)

ROOT = Path(__file__).parent.parent.parent
LISTENERS, ROUNDS, EVENTS = 1000, 5, 8
CHANNEL = "floor"
TEXT = "x" * 200


class Counted(EventStreamReader):
    """A reader that counts the events it receives, the first line of the stream included."""

    async def _take(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            if line.startswith((b"id: ", b"data: ")):
                self.got.append(1)


@contextlib.contextmanager
def process(*command: str, env: dict[str, str]) -> Iterator[None]:
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
        "CONTINUITY_TEMPLATE_MODULES": "tests.support.step_template",
        "CONTINUITY_LOG_LEVEL": "WARNING",
        "CONTINUITY_THROTTLE_PER_SECOND": "100000",
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env


class Side:
    """One server with its listeners, and the function that publishes an event to it."""

    def __init__(self, url: str, token: str, path: str, publish: Callable[[], float]) -> None:
        self.readers = [Counted(url, token, path) for _ in range(LISTENERS)]
        self.crowd = EventStreamReaders(self.readers)
        self._publish = publish

    async def gather(self) -> None:
        """Connect every listener."""
        self.crowd.start()
        await self.crowd.wait_until(lambda one: bool(one.got))
        await asyncio.sleep(1)

    async def tell(self) -> float:
        """Publish one event; return the seconds until the last listener has received it."""
        before = [len(one.got) for one in self.readers]
        began = await asyncio.to_thread(self._publish)
        while any(len(one.got) == n for one, n in zip(self.readers, before, strict=True)):
            if time.perf_counter() - began > 10:
                raise TimeoutError("an event was lost")
            await asyncio.sleep(0.001)
        return time.perf_counter() - began


def our_side(url: str) -> Side:
    """Return our server's side: the event is written to the database and published after the
    commit."""
    from decisions.identity.principals import create_token, local_principal
    from runs.events import notify
    from runs.lifecycle.changes import NewEvent, Transition
    from runs.lifecycle.transition import apply
    from runs.models import Run
    from runs.submission.services import submit_run

    run_id = submit_run(
        principal=local_principal(),
        template_id="test_stepwise",
        inputs={"do": ["ok"]},
        options={"mode": "async"},
    ).run_id
    run = Run.objects.get(id=run_id)
    went_out: list[float] = []
    publish = notify._publisher.publish

    def noting(message: str) -> None:
        went_out.append(time.perf_counter())
        publish(message)

    notify._publisher.publish = noting  # type: ignore[method-assign]

    def tell() -> float:
        event = NewEvent("tool.update", {"text": TEXT})
        apply(Transition(run, {"status": "queued"}, events=[event]))
        return went_out[-1]

    return Side(url, create_token(name="crowd"), f"/api/v1/runs/{run_id}/events", tell)


def floor_side(url: str, redis_url: str) -> Side:
    """Return the floor's side."""
    import redis

    client = redis.Redis.from_url(redis_url)

    def tell() -> float:
        began = time.perf_counter()
        client.publish(CHANNEL, json.dumps({"text": TEXT}))
        return began

    return Side(url, "none", "/stream", tell)


async def measure(sides: dict[str, Side]) -> dict[str, list[float]]:
    """Return deliveries per second, one number a round."""
    for side in sides.values():
        await side.gather()
    figures: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        took: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(EVENTS):
            for name, side in sides.items():
                took[name].append(await side.tell())
        for name, seconds in took.items():
            figures[name].append(LISTENERS / sorted(seconds)[len(seconds) // 2])
    for side in sides.values():
        await side.crowd.stop()
    return figures


def main() -> None:
    """Measure and report."""
    raise_file_limit(3 * LISTENERS)
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
            process("manage.py", "serve", "--port", str(ours), env=env),
            process("-m", "tests.benchmarks.floor_stream", str(floor), env=env),
        ):
            sides: dict[str, Any] = {
                "ours": our_side(f"http://127.0.0.1:{ours}"),
                "floor": floor_side(f"http://127.0.0.1:{floor}", redis.url),
            }
            figures = asyncio.run(measure(sides))
    report(
        "event_stream",
        listeners=LISTENERS,
        deliveries_per_s={name: spread(each) for name, each in figures.items()},
        ratio_to_floor=ratio(figures["ours"], figures["floor"]),
        goals={"ratio_to_floor": ">= 0.8"},
    )


if __name__ == "__main__":
    main()
