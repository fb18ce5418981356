"""The event hub when Redis loses messages, sends wrong ones, hangs or is down: at most two seconds
late, and no event lost.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import redis
from django.conf import settings
from django.test import override_settings

from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal
from runners import metrics
from runs.events import notify
from runs.models import Run
from runs.streaming import hub
from runs.streaming.event_log import EventLog
from runs.submission.cancel import cancel_run
from tests.services import RedisServer, redis_server
from tests.support.runs.event_streams import Stream, all_at, reading, tell, until

Submit = Callable[..., str]


@pytest.fixture
def own_redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """Start a Redis that the test may kill."""
    monkeypatch.setattr(notify, "_publisher", notify._Publisher())
    monkeypatch.setattr(notify, "QUIET_S", 0.1)
    with redis_server() as server, override_settings(REDIS_URL=server.url):
        yield server


async def until_subscribed(server: RedisServer, other_than: str = "") -> str:
    """Wait until the hub has one subscription, not the one named; return the id of its client."""
    with redis.Redis.from_url(server.url) as client:
        async with asyncio.timeout(60):
            while True:
                found = await asyncio.to_thread(client.client_list, _type="pubsub")
                if len(found) == 1 and found[0]["id"] != other_than:
                    return str(found[0]["id"])
                await asyncio.sleep(0.02)


@pytest.mark.slow
def test_lost_messages_cost_two_seconds_and_no_event(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = submit()
    rng, publish = random.Random(7), notify._publisher.publish
    monkeypatch.setattr(
        notify._publisher, "publish", lambda message: rng.random() < 0.5 or publish(message)
    )

    async def scenario() -> None:
        streams = [Stream(principal, run_id) for _ in range(20)]
        async with reading(streams):
            for _ in range(40):
                await in_thread(tell, run_id, rng.randrange(1, 4))
            await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))
        last = (await in_thread(Run.objects.get)).last_seq
        assert all(one.got == list(range(1, last + 1)) for one in streams)

    asyncio.run(scenario())


def test_wrong_messages_on_the_channel_have_no_effect(submit: Submit, principal: Principal) -> None:
    run_id = submit()
    client = redis.Redis.from_url(settings.REDIS_URL)
    wrong_seqs: list[Any] = [10**12, -5, 0, True, "9", None, 2.5, [3]]

    async def scenario() -> None:
        stream = Stream(principal, run_id)
        async with reading([stream]):
            await until(lambda: stream.got == [1])
            for seq in wrong_seqs:
                client.publish(
                    notify.CHANNEL,
                    json.dumps({"runId": run_id, "seq": seq, "types": ["run.failed"]}),
                )
            await in_thread(tell, run_id)
            await until(lambda: stream.got == [1, 2])
            await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))
        assert stream.got == [1, 2, 3]

    asyncio.run(scenario())
    client.close()


@pytest.mark.slow
def test_a_restart_of_redis_loses_no_event(
    submit: Submit, principal: Principal, own_redis: RedisServer
) -> None:
    run_id = submit()

    async def scenario() -> float:
        streams = [Stream(principal, run_id) for _ in range(10)]
        async with reading(streams):
            await until(lambda: all(one.got == [1] for one in streams))
            own_redis.kill()
            await in_thread(tell, run_id)
            await until(lambda: all(one.got == [1, 2] for one in streams))
            await asyncio.to_thread(own_redis.start)
            await until_subscribed(own_redis)
            delays = []
            for seq in range(3, 7):
                await in_thread(tell, run_id)
                started_at = time.monotonic()
                await until(all_at(streams, seq))
                delays.append(time.monotonic() - started_at)
            await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))
        assert all(one.got == list(range(1, 8)) for one in streams)
        return min(delays)

    assert asyncio.run(scenario()) < 0.5  # by message again, not by the query every two seconds


def test_an_outage_is_logged_once_at_its_start_and_once_at_its_end(
    submit: Submit,
    principal: Principal,
    own_redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(hub, "RETRY_S", 0.02)
    run_id = submit()

    def count_log_lines(word: str) -> int:
        return sum(
            r.name == "runs.streaming.hub" and word in r.getMessage() for r in caplog.records
        )

    def is_logged(word: str, number: int) -> bool:
        return count_log_lines(word) == number

    async def scenario() -> None:
        async with reading([Stream(principal, run_id)]):
            for number in (1, 2):
                own_redis.kill()
                await until(partial(is_logged, "polling the database", number))
                await asyncio.sleep(0.5)  # about twenty attempts to connect
                await asyncio.to_thread(own_redis.start)
                await until(partial(is_logged, "work again", number))
            assert (count_log_lines("polling the database"), count_log_lines("work again")) == (
                2,
                2,
            )
            await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))

    asyncio.run(scenario())


@pytest.mark.slow
def test_a_silent_subscription_is_replaced(
    submit: Submit, principal: Principal, own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "QUIET_S", 0.2)
    monkeypatch.setattr(hub, "POLL_S", 60.0)
    run_id = submit()

    async def scenario() -> None:
        stream = Stream(principal, run_id)
        async with reading([stream]):
            await until(lambda: stream.got == [1])
            first = await until_subscribed(own_redis)
            with redis.Redis.from_url(own_redis.url) as client:
                client.client_pause(1500, all=True)
            await until_subscribed(own_redis, other_than=first)
            await in_thread(tell, run_id)
            await until(lambda: stream.got == [1, 2])
            await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))

    asyncio.run(scenario())


@pytest.mark.parametrize("loop", ["notifications", "poll", "read"])
def test_a_loop_that_fails_is_started_again_and_reported(
    loop: str,
    submit: Submit,
    principal: Principal,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The loop meets one defect; the reader gets every event, by whichever loop is needed."""
    monkeypatch.setattr(hub, "RETRY_S", 0.05)
    monkeypatch.setattr(hub, "POLL_S", 0.3 if loop == "poll" else 60.0)
    if loop == "poll":
        monkeypatch.setattr(notify._publisher, "publish", lambda message: None)
    failing = {
        "notifications": (hub.Hub, "_handle"),
        "poll": (hub.Hub, "_advance"),
        "read": (EventLog, "distribute"),
    }[loop]
    original = getattr(*failing)
    failed: list[bool] = []
    own: list[hub.Hub] = []  # that of a server of other tests may still be subscribed

    def fail_once(self: Any, *args: Any) -> None:
        if not failed and (self in own or not isinstance(self, hub.Hub)):
            failed.append(True)
            raise ZeroDivisionError("a defect")
        original(self, *args)

    counted: list[str] = []  # a server of other tests may publish the metrics of this process
    monkeypatch.setattr(metrics, "event_hub_restarted", counted.append)
    monkeypatch.setattr(*failing, fail_once)
    run_id = submit()

    async def scenario() -> None:
        own.append(hub.get_hub())
        stream = Stream(principal, run_id)
        async with reading([stream]):
            await until(lambda: stream.got == [1])
            async with asyncio.timeout(30):
                while loop not in (hub.get_hub().fault() or ""):
                    await in_thread(tell, run_id)  # maybe before the hub has subscribed
                    await asyncio.sleep(0.05)
            last = (await in_thread(Run.objects.get)).last_seq
            await until(lambda: stream.got == list(range(1, last + 1)))
            await in_thread(lambda: cancel_run(principal=principal, run_id=run_id))
        assert stream.got == list(range(1, last + 2))

    asyncio.run(scenario())
    assert failed
    assert f"the loop {loop!r} of the event hub failed" in caplog.text
    assert counted == [loop]
