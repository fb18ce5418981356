"""The backlog of a live page's viewer: the newest frame first, and an end that always comes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import pytest
import redis.asyncio

from decisions.foundation.infra.cancellation import cancel_and_wait
from decisions.foundation.infra.redis import connect
from decisions.foundation.security.sealed_messages import seal_message
from runs.live.broadcaster import PageBroadcaster
from runs.live.channel import viewers_channel
from runs.live.viewer_queue import MAX_NOTICES, ViewerSender
from runs.websockets.connection import run_until_first
from runs.websockets.live_viewer import PageSubscription

TIMEOUT_S = 30.0


def test_a_slow_viewer_gets_the_newest_picture_and_a_limited_number_of_notices() -> None:
    subscription = PageSubscription("task_x", redis.asyncio.Redis())
    channel = viewers_channel("task_x")
    for number in range(200):
        subscription.receive(seal_message(channel, {"type": "live_tab", "url": str(number)}))
        subscription.receive(
            seal_message(channel, {"type": "live_frame", "data": "A", "width": number})
        )
    subscription.receive(b"not sealed here")

    async def read() -> list[Any]:
        messages = aiter(subscription.messages)
        return [await anext(messages) for _ in range(MAX_NOTICES + 1)]

    *notices, picture = asyncio.run(read())
    assert [int(one["url"]) for one in notices] == list(range(200 - MAX_NOTICES, 200))
    assert picture["width"] == 199


def test_a_slow_sender_sends_only_the_newest_picture() -> None:
    sent: list[Any] = []

    async def publish(message: Any) -> None:
        sent.append(message)
        await asyncio.sleep(0)

    async def show() -> None:
        sender = ViewerSender(publish)
        for number in range(100):  # nothing is sent before this task yields
            sender.set_picture({"number": number})
        sender.add_notice({"notice": 1})
        while len(sent) < 2:
            await asyncio.sleep(0)
        await sender.close()

    asyncio.run(show())
    assert sent == [{"notice": 1}, {"number": 99}]


def test_pending_notices_are_sent_before_closing_and_pictures_are_not() -> None:
    sent: list[Any] = []

    async def publish(message: Any) -> None:
        sent.append(message)

    async def close() -> None:
        sender = ViewerSender(publish)
        sender.set_picture({"picture": 1})
        sender.add_notice({"notice": 1})
        sender.add_notice({"notice": 2})
        await sender.close()

    asyncio.run(close())
    assert sent == [{"notice": 1}, {"notice": 2}]


async def lose_a_cancel() -> None:
    """Ignore one cancellation, as `asyncio.wait_for` may when the cancel comes too late."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.Event().wait()


def test_a_task_that_ignores_a_cancel_is_ended_all_the_same() -> None:
    async def fail() -> None:
        raise ValueError("broken")

    async def end() -> list[BaseException | None]:
        tasks = [asyncio.create_task(one) for one in (lose_a_cancel(), fail(), asyncio.sleep(0))]
        await asyncio.sleep(0)
        return await asyncio.wait_for(cancel_and_wait(tasks), TIMEOUT_S)

    endless, failed, done = asyncio.run(end())
    assert (endless, done) == (None, None)
    assert str(failed) == "broken"


@pytest.mark.slow
def test_a_sender_over_redis_can_be_closed_at_any_moment() -> None:
    async def close() -> None:
        client = connect(blocking=False)

        async def publish(message: Any) -> None:
            await client.publish("test:unused", seal_message("test:unused", message))

        for ticks in range(24):  # a command takes about fifteen iterations of the loop
            sender = ViewerSender(publish)
            sender.add_notice({"notice": ticks})
            for _ in range(ticks):
                await asyncio.sleep(0)
            await cancel_and_wait([sender._sending])
        await client.aclose()

    asyncio.run(asyncio.wait_for(close(), TIMEOUT_S * 2))


def test_a_connection_ends_with_its_first_side_though_the_other_ignores_a_cancel() -> None:
    async def disconnect() -> None:
        await asyncio.sleep(0)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        asyncio.run(asyncio.wait_for(run_until_first(lose_a_cancel(), disconnect()), TIMEOUT_S))


class SlowlyClosingPage:
    """A page without viewers that takes long to close."""

    has_ended = True

    def __init__(self) -> None:
        self.may_close = asyncio.Event()

    async def close(self) -> None:
        """Wait for the test, then raise."""
        await self.may_close.wait()
        raise RuntimeError("broken")


def test_a_page_that_closes_slowly_delays_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def serve() -> None:
        broadcaster, stuck = PageBroadcaster(), SlowlyClosingPage()
        broadcaster._pages["task_stuck"] = stuck  # type: ignore[assignment]
        broadcaster._close_ended()
        assert (broadcaster._pages, list(broadcaster._closing)) == ({}, ["task_stuck"])
        stuck.may_close.set()
        await asyncio.wait_for(broadcaster.serve(), TIMEOUT_S)  # no task has a page: it returns
        assert broadcaster._closing == {}

    with caplog.at_level(logging.ERROR, "runs.live.broadcaster"):
        asyncio.run(serve())
    assert "task_stuck could not be closed cleanly" in caplog.text
