"""The event hub on the rows and a Redis of its own: one read for all, nothing lost, nobody
slowed.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from django.test import override_settings

from decisions.principals import Principal
from runs import event_stream, hub, selectors, wakeups
from runs.changes import NewEvent, Transition
from runs.hub import get_hub
from runs.models import Run
from runs.services import cancel_run
from runs.transition import apply
from runs.waiting import wait_events, wait_run
from tests.services import RedisServer, redis_server

Submit = Callable[..., str]


def tell(run_id: str, number: int = 1) -> None:
    """Write events as a worker would, in one transaction."""
    run = Run.objects.get(id=run_id)
    events = [NewEvent("tool.update", {"n": n}) for n in range(number)]
    assert apply(Transition(run, {"status": run.status}, events=events))


async def aside(function: Callable[..., Any], *args: Any) -> Any:
    """Do something with the database on another thread, and give its connection back."""

    def go() -> Any:
        try:
            return function(*args)
        finally:
            connection.close()

    return await sync_to_async(go, thread_sensitive=False)()


class Stream:
    """A reader of a run's event stream that notes the seqs it got."""

    def __init__(self, principal: Principal, run_id: str, after: int = 0) -> None:
        self.principal, self.run_id, self.after = principal, run_id, after
        self.got: list[int] = []
        self.comments = 0

    async def read(self, pause_s: float = 0.0) -> None:
        """Read until the end of the stream."""
        nothing = {"events": [], "lastSeq": self.after, "terminal": False}
        lines = event_stream._lines(self.principal, self.run_id, nothing)
        async for part in lines:
            ids = [line for line in part.split(b"\n") if line.startswith(b"id: ")]
            self.got += [int(line[4:]) for line in ids]
            self.comments += part.startswith(b":")
            await asyncio.sleep(pause_s)


@asynccontextmanager
async def reading(streams: list[Stream], pause_s: float = 0.0) -> AsyncIterator[None]:
    """Let streams read; at the end of the block they have a while to end by themselves."""
    tasks = [asyncio.create_task(one.read(pause_s)) for one in streams]
    try:
        yield
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(is_so: Callable[[], bool], within_s: float = 20) -> None:
    """Wait until something becomes so."""
    async with asyncio.timeout(within_s):
        while not is_so():
            await asyncio.sleep(0.01)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often the rows of events were read: by the hub, and by readers for themselves."""
    counts = {"hub": 0, "pages": 0}
    read_logs, list_events = selectors.read_logs, selectors.list_events_and_seq

    def by_hub(spans: Mapping[str, tuple[int, int]]) -> Any:
        counts["hub"] += 1
        return read_logs(spans)

    def by_reader(**asked: Any) -> Any:
        counts["pages"] += 1
        return list_events(**asked)

    monkeypatch.setattr(selectors, "read_logs", by_hub)
    monkeypatch.setattr(selectors, "list_events_and_seq", by_reader)
    return counts


@pytest.fixture
def own_redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """A Redis that the test may kill."""
    monkeypatch.setattr(wakeups, "_bell", wakeups._Bell())
    monkeypatch.setattr(wakeups, "QUIET_S", 0.1)
    with redis_server() as server, override_settings(REDIS_URL=server.url):
        yield server


def test_four_hundred_listeners_of_a_run_cost_one_read_a_wake_up(
    submit: Submit, principal: Principal, counted: dict[str, int]
) -> None:
    run_id = submit()

    async def story() -> None:
        streams = [Stream(principal, run_id, after=1) for _ in range(400)]
        async with reading(streams):
            await until(lambda: counted["pages"] == 400)
            await asyncio.sleep(0.5)
            for seq in range(2, 12):
                await aside(tell, run_id)
                await until(lambda seq=seq: all(one.got[-1:] == [seq] for one in streams))
            await aside(lambda: cancel_run(principal=principal, run_id=run_id))
        assert all(one.got == list(range(2, 13)) for one in streams)

    asyncio.run(story())
    assert counted["pages"] == 400  # where each began; nobody read for itself after that
    assert counted["hub"] <= 2 * 11


def test_news_of_many_runs_are_read_together(
    make_run: Callable[..., Run], principal: Principal, counted: dict[str, int]
) -> None:
    runs = [make_run().id for _ in range(60)]

    async def story() -> None:
        streams = [Stream(principal, run_id) for run_id in runs]
        async with reading(streams):
            await until(lambda: counted["pages"] == 60)
            await aside(lambda: [tell(run_id, 2) for run_id in runs])
            await until(lambda: all(len(one.got) == 2 for one in streams))
            await aside(lambda: [cancel_run(principal=principal, run_id=one) for one in runs])
        assert all(one.got == [1, 2, 3] for one in streams)

    asyncio.run(story())
    assert counted["hub"] <= 2 * 60


def test_a_slow_reader_pages_and_slows_nobody(
    submit: Submit, principal: Principal, counted: dict[str, int]
) -> None:
    run_id = submit()
    slow, quick = Stream(principal, run_id, after=1), Stream(principal, run_id, after=1)

    async def story() -> None:
        task = asyncio.create_task(slow.read(0.3))
        async with reading([quick]):
            await until(lambda: counted["pages"] == 2)
            for _ in range(30):
                await aside(tell, run_id, 40)
            await until(lambda: len(quick.got) == 1200)
            assert len(slow.got) < 1200
            await aside(lambda: cancel_run(principal=principal, run_id=run_id))
        async with asyncio.timeout(60):
            await task

    asyncio.run(story())
    assert slow.got == quick.got == list(range(2, 1203))
    assert counted["pages"] > 2


def test_lost_messages_cost_two_seconds_and_no_event(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = submit()
    chance, publish = random.Random(7), wakeups._bell.publish
    monkeypatch.setattr(
        wakeups._bell, "publish", lambda said: chance.random() < 0.5 or publish(said)
    )

    async def story() -> None:
        streams = [Stream(principal, run_id) for _ in range(20)]
        async with reading(streams):
            for _ in range(40):
                await aside(tell, run_id, chance.randrange(1, 4))
            await aside(lambda: cancel_run(principal=principal, run_id=run_id))
        last = (await aside(Run.objects.get)).last_seq
        assert all(one.got == list(range(1, last + 1)) for one in streams)

    asyncio.run(story())


def test_lies_on_the_channel_change_nothing(submit: Submit, principal: Principal) -> None:
    run_id = submit()
    client = redis.Redis.from_url(settings.REDIS_URL)
    lies: list[Any] = [10**12, -5, 0, True, "9", None, 2.5, [3]]

    async def story() -> None:
        stream = Stream(principal, run_id)
        async with reading([stream]):
            await until(lambda: stream.got == [1])
            for seq in lies:
                client.publish(wakeups.CHANNEL, json.dumps({"runId": run_id, "seq": seq}))
            await aside(tell, run_id)
            await until(lambda: stream.got == [1, 2])
            await aside(lambda: cancel_run(principal=principal, run_id=run_id))
        assert stream.got == [1, 2, 3]

    asyncio.run(story())
    client.close()


def test_a_redis_that_goes_away_and_comes_back_loses_nothing(
    submit: Submit, principal: Principal, own_redis: RedisServer
) -> None:
    run_id = submit()

    async def story() -> float:
        streams = [Stream(principal, run_id) for _ in range(10)]
        async with reading(streams):
            await until(lambda: all(one.got == [1] for one in streams))
            own_redis.kill()
            await aside(tell, run_id)
            await until(lambda: all(one.got == [1, 2] for one in streams))
            await asyncio.to_thread(own_redis.start)
            await asyncio.sleep(hub.AGAIN_S + 1)
            delays = []
            for seq in range(3, 7):
                await aside(tell, run_id)
                began = time.monotonic()
                await until(lambda seq=seq: all(one.got[-1] == seq for one in streams))
                delays.append(time.monotonic() - began)
            await aside(lambda: cancel_run(principal=principal, run_id=run_id))
        assert all(one.got == list(range(1, 8)) for one in streams)
        return min(delays)

    assert asyncio.run(story()) < 0.5  # by message again, not by the query every two seconds


def test_a_subscription_that_fell_silent_is_made_anew(
    submit: Submit, principal: Principal, own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "QUIET_S", 0.2)
    monkeypatch.setattr(hub, "POLL_S", 60.0)
    run_id = submit()

    async def story() -> None:
        stream = Stream(principal, run_id)
        async with reading([stream]):
            await until(lambda: stream.got == [1])
            await asyncio.sleep(1)
            client = redis.Redis.from_url(own_redis.url)
            first = [one["id"] for one in client.client_list(_type="pubsub")]
            client.execute_command("CLIENT", "PAUSE", 1500, "ALL")
            await asyncio.sleep(4)
            await until(lambda: len(client.client_list(_type="pubsub")) == 1)
            assert [one["id"] for one in client.client_list(_type="pubsub")] != first
            client.close()
            await aside(tell, run_id)
            await until(lambda: stream.got == [1, 2])
            await aside(lambda: cancel_run(principal=principal, run_id=run_id))

    asyncio.run(story())


def test_readers_that_come_and_go_miss_nothing_and_see_nothing_twice(
    submit: Submit, principal: Principal
) -> None:
    run_id, chance = submit(), random.Random(3)

    async def come_and_go(stream: Stream) -> None:
        while True:
            task = asyncio.create_task(stream.read(chance.random() / 50))
            done, _ = await asyncio.wait([task], timeout=chance.random() / 4)
            if done:
                return task.result()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            stream.after = max([0, *stream.got])

    async def story() -> None:
        streams = [Stream(principal, run_id) for _ in range(30)]
        tasks = [asyncio.create_task(come_and_go(one)) for one in streams]
        for _ in range(60):
            await aside(tell, run_id, chance.randrange(1, 5))
        await aside(lambda: cancel_run(principal=principal, run_id=run_id))
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks)
        last = (await aside(Run.objects.get)).last_seq
        assert all(one.got == list(range(1, last + 1)) for one in streams)

    asyncio.run(story())


def test_a_reader_that_names_a_seq_of_the_future_harms_nobody(
    submit: Submit, principal: Principal
) -> None:
    run_id = submit()

    async def story() -> None:
        far, near = Stream(principal, run_id, after=10**9), Stream(principal, run_id)
        async with reading([far, near]):
            await until(lambda: near.got == [1])
            await aside(tell, run_id)
            await until(lambda: near.got == [1, 2])
            await aside(lambda: cancel_run(principal=principal, run_id=run_id))
        assert (far.got, near.got) == ([], [1, 2, 3])

    asyncio.run(story())


def test_a_run_that_is_removed_ends_its_streams(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "POLL_S", 0.1)
    run_id = submit()

    async def story() -> None:
        stream = Stream(principal, run_id)
        async with reading([stream]):
            await until(lambda: stream.got == [1])
            await aside(lambda: Run.objects.filter(id=run_id).delete())

    asyncio.run(story())


def test_a_server_that_stops_ends_every_wait(submit: Submit, principal: Principal) -> None:
    run_id = submit()

    async def story() -> None:
        stream = Stream(principal, run_id)
        page = asyncio.create_task(
            wait_events(principal=principal, run_id=run_id, after=1, wait_s=50)
        )
        run = asyncio.create_task(wait_run(principal=principal, run_id=run_id, wait_s=50))
        async with reading([stream]):
            await until(lambda: stream.got == [1])
            await asyncio.sleep(0.2)
            get_hub().close()
        assert (await page)["events"] == []
        assert (await run)["status"] == "queued"
        late = await wait_events(principal=principal, run_id=run_id, after=1, wait_s=50)
        assert late == {"events": [], "lastSeq": 1, "terminal": False}

    began = time.monotonic()
    asyncio.run(story())
    assert time.monotonic() - began < 20


def test_all_who_wait_for_a_run_read_its_end_once(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, reads = submit(), [0]
    genuine = selectors.get_run_and_seq

    def counting(**asked: Any) -> Any:
        reads[0] += 1
        return genuine(**asked)

    monkeypatch.setattr(selectors, "get_run_and_seq", counting)

    async def story() -> list[dict[str, Any]]:
        waits = [
            asyncio.create_task(wait_run(principal=principal, run_id=run_id, wait_s=60))
            for _ in range(200)
        ]
        await until(lambda: reads[0] == 200)
        await asyncio.sleep(0.3)
        for _ in range(5):
            await aside(tell, run_id)
        await aside(lambda: cancel_run(principal=principal, run_id=run_id))
        return await asyncio.gather(*waits)

    runs = asyncio.run(story())
    assert {run["status"] for run in runs} == {"canceled"}
    assert reads[0] < 210
