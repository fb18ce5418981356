"""The event hub reads rows once for all streams: no stream blocks another or misses an event."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import redis
from django.conf import settings

from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal
from runners import metrics
from runs.events import notify
from runs.models import Run
from runs.queries import runs as queries_runs
from runs.streaming import hub, subscriber
from runs.streaming.hub import get_hub
from runs.streaming.long_poll import wait_events, wait_run
from runs.submission.cancel import cancel_run
from tests.support.runs.event_streams import Stream, all_at, reading, tell, tell_each, until

Submit = Callable[..., str]


@pytest.fixture
def read_counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count the reads of event rows: by the hub, and by each stream itself."""
    counts = {"hub": 0, "pages": 0}
    read_logs, list_events = queries_runs.read_logs, queries_runs.list_events_and_seq

    def by_hub(spans: Mapping[str, tuple[int, int]]) -> Any:
        counts["hub"] += 1
        return read_logs(spans)

    def by_reader(**options: Any) -> Any:
        counts["pages"] += 1
        return list_events(**options)

    monkeypatch.setattr(queries_runs, "read_logs", by_hub)
    monkeypatch.setattr(queries_runs, "list_events_and_seq", by_reader)
    return counts


@pytest.mark.slow
def test_four_hundred_streams_of_a_run_cost_one_read_per_wakeup(
    submit: Submit, principal: Principal, read_counts: dict[str, int]
) -> None:
    run_id = submit()

    async def scenario() -> None:
        streams = [Stream(principal, run_id, after=1) for _ in range(400)]
        async with reading(streams):
            await until(lambda: read_counts["pages"] == 400)
            await asyncio.sleep(0.5)
            for seq in range(2, 12):
                await in_thread(tell, run_id)
                await until(all_at(streams, seq))
            await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))
        assert all(one.got == list(range(2, 13)) for one in streams)

    asyncio.run(scenario())
    # The first read of each stream; later no stream reads by itself.
    assert read_counts["pages"] == 400
    assert read_counts["hub"] <= 2 * 11


@pytest.mark.slow
def test_events_of_many_runs_are_read_together(
    make_run: Callable[..., Run], principal: Principal, read_counts: dict[str, int]
) -> None:
    runs = [make_run().id for _ in range(60)]

    async def scenario() -> None:
        streams = [Stream(principal, run_id) for run_id in runs]
        async with reading(streams):
            await until(lambda: read_counts["pages"] == 60)
            await in_thread(tell_each, runs, 2)
            await until(lambda: all(len(one.got) == 2 for one in streams))
            await in_thread(lambda: [cancel_run(principal=principal, run_id=one) for one in runs])
        assert all(one.got == [1, 2, 3] for one in streams)

    asyncio.run(scenario())
    assert read_counts["hub"] <= 2 * 60


def test_a_slow_stream_reads_pages_and_delays_no_other(
    submit: Submit,
    principal: Principal,
    read_counts: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriber, "QUEUE_EVENTS", 100)
    run_id = submit()
    slow, quick = Stream(principal, run_id, after=1), Stream(principal, run_id, after=1)

    async def scenario() -> None:
        task = asyncio.create_task(slow.read(0.3))
        async with reading([quick]):
            await until(lambda: read_counts["pages"] == 2)
            for _ in range(30):
                await in_thread(tell, run_id, 40)
            await until(lambda: len(quick.got) == 1200)
            assert len(slow.got) < 1200
            await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))
        async with asyncio.timeout(60):
            await task

    asyncio.run(scenario())
    assert slow.got == quick.got == list(range(2, 1203))
    assert read_counts["pages"] > 2


def test_streams_that_reconnect_miss_no_event_and_repeat_none(
    submit: Submit, principal: Principal
) -> None:
    run_id, rng = submit(), random.Random(3)

    async def reconnect_repeatedly(stream: Stream) -> None:
        while True:
            task = asyncio.create_task(stream.read(rng.random() / 50))
            done, _ = await asyncio.wait([task], timeout=rng.random() / 4)
            if done:
                return task.result()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            stream.after = max([0, *stream.got])

    async def scenario() -> None:
        streams = [Stream(principal, run_id) for _ in range(30)]
        tasks = [asyncio.create_task(reconnect_repeatedly(one)) for one in streams]
        for _ in range(60):
            await in_thread(tell, run_id, rng.randrange(1, 5))
        await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks)
        last = (await in_thread(Run.objects.get)).last_seq
        assert all(one.got == list(range(1, last + 1)) for one in streams)

    asyncio.run(scenario())


def test_a_stream_gets_an_event_that_is_written_during_its_first_read(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = submit()
    early, late = Stream(principal, run_id), Stream(principal, run_id)
    list_events = queries_runs.list_events_and_seq
    has_read, may_return = threading.Event(), threading.Event()

    def return_late(**options: Any) -> Any:
        page = list_events(**options)
        has_read.set()
        may_return.wait(20)
        return page

    async def scenario() -> None:
        async with reading([early]):
            await until(lambda: early.got == [1])
            monkeypatch.setattr(queries_runs, "list_events_and_seq", return_late)
            async with reading([late]):
                await until(has_read.is_set)
                await in_thread(tell, run_id)
                await until(lambda: early.got == [1, 2])
                may_return.set()
                await until(lambda: late.got == [1, 2], within_s=5)
                await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))

    asyncio.run(scenario())
    assert early.got == late.got == [1, 2, 3]


@pytest.mark.parametrize(
    "message",
    [
        "no json",
        "[]",
        "{}",
        '{"runId": 5, "seq": "x"}',
        "\xff",
        '{"runId": "RUN", "seq": 9, "types": [[]]}',
    ],
)
def test_an_invalid_message_on_the_channel_does_not_stop_notifications(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    monkeypatch.setattr(hub, "POLL_S", 60)  # only a notification brings an event
    restarted: list[str] = []
    monkeypatch.setattr(metrics, "event_hub_restarted", restarted.append)
    run_id = submit()
    stream = Stream(principal, run_id)

    def publish() -> None:
        with redis.Redis.from_url(settings.REDIS_URL) as client:
            client.publish(notify.CHANNEL, message.replace("RUN", run_id))

    async def scenario() -> None:
        async with reading([stream]):
            await until(lambda: stream.got == [1])
            await in_thread(tell, run_id)
            await until(lambda: stream.got == [1, 2])  # the hub has subscribed to the channel
            await in_thread(publish)
            await in_thread(tell, run_id)
            await until(lambda: stream.got == [1, 2, 3], within_s=5)
            await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))

    asyncio.run(scenario())
    assert restarted == []


def test_a_stream_with_a_future_seq_does_not_affect_others(
    submit: Submit, principal: Principal
) -> None:
    run_id = submit()

    async def scenario() -> None:
        far, near = Stream(principal, run_id, after=10**9), Stream(principal, run_id)
        async with reading([far, near]):
            await until(lambda: near.got == [1])
            await in_thread(tell, run_id)
            await until(lambda: near.got == [1, 2])
            await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))
        assert (far.got, near.got) == ([], [1, 2, 3])

    asyncio.run(scenario())


def test_deleting_a_run_ends_its_streams(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "POLL_S", 0.1)
    run_id = submit()

    async def scenario() -> None:
        stream = Stream(principal, run_id)
        async with reading([stream]):
            await until(lambda: stream.got == [1])
            await in_thread(lambda: Run.objects.filter(id=run_id).delete())

    asyncio.run(scenario())


def test_a_stopping_server_ends_every_wait(submit: Submit, principal: Principal) -> None:
    run_id = submit()

    async def scenario() -> None:
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

    started_at = time.monotonic()
    asyncio.run(scenario())
    assert time.monotonic() - started_at < 20


@pytest.mark.slow
def test_the_end_of_a_run_is_read_once_for_all_waiting_callers(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, reads = submit(), [0]

    def count(read: Callable[..., Any]) -> Callable[..., Any]:
        def counting(**options: Any) -> Any:
            reads[0] += 1
            return read(**options)

        return counting

    for name in ("get_run_row", "get_run_and_seq"):
        monkeypatch.setattr(queries_runs, name, count(getattr(queries_runs, name)))

    async def scenario() -> list[dict[str, Any]]:
        waiters = [
            asyncio.create_task(wait_run(principal=principal, run_id=run_id, wait_s=60))
            for _ in range(200)
        ]
        await until(lambda: reads[0] == 200)
        await asyncio.sleep(0.3)
        for _ in range(5):
            await in_thread(tell, run_id)
        await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))
        return await asyncio.gather(*waiters)

    runs = asyncio.run(scenario())
    assert {run["status"] for run in runs} == {"canceled"}
    assert reads[0] < 210
