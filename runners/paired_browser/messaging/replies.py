"""The answers of browsers to the calls of one event loop, over one Redis subscription."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from decisions.foundation.infra.cancellation import cancel_and_wait
from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.redis import connect, messages_of, redis_errors, subscription
from decisions.foundation.security.sealed_messages import Inbox
from runners.paired_browser.messaging.calls import CallStore
from runners.paired_browser.messaging.channel import new_reply_channel

READY_S = 3.0  # time for Redis to accept the subscription
LINGER_S = 30.0  # how long the subscription stays without a call
RETRY_S = 1.0
Answers = asyncio.Queue[Mapping[str, Any]]
log = logging.getLogger(__name__)


class ReplyHub:
    """The calls of one event loop that wait for a browser.

    Attributes:
        channel: on which this event loop receives answers.
    """

    def __init__(self) -> None:
        self.channel = new_reply_channel()
        self._waiting: dict[str, Answers] = {}
        self._inbox = Inbox(self.channel)
        self._is_ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.TimerHandle | None = None
        self._redis = Outage(
            log,
            on_failure="answers of browsers do not arrive from redis",
            on_recovery="answers of browsers arrive from redis again",
        )
        self._client = connect(blocking=False)
        self.calls = CallStore(self._client)

    @asynccontextmanager
    async def receive_answers(self, action_id: str) -> AsyncIterator[Answers]:
        """Yield a queue of the answers to one call.

        Raises:
            TimeoutError: Redis is unavailable.
        """
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        answers: Answers = asyncio.Queue()
        self._waiting[action_id] = answers
        try:
            async with asyncio.timeout(READY_S):
                await self._is_ready.wait()
            yield answers
        finally:
            if self._waiting.get(action_id) is answers:
                del self._waiting[action_id]
            if not self._waiting:
                loop = asyncio.get_running_loop()
                self._closing = loop.call_later(LINGER_S, self._close_later)

    def _close_later(self) -> None:
        task, self._task = self._task, None
        self._is_ready.clear()
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """End the subscription at once; the next call makes a new one."""
        _hubs.pop(asyncio.get_running_loop(), None)
        if self._closing is not None:
            self._closing.cancel()
        task, self._task, self._closing = self._task, None, None
        self._is_ready.clear()
        await cancel_and_wait([task] if task is not None else [])
        await self._client.aclose()

    async def _follow(self) -> None:
        try:
            while True:
                try:
                    async with subscription(self.channel) as channel:
                        async for message in messages_of(channel):
                            self._handle(message)
                except redis_errors() as error:
                    self._redis.failed(error)
                    self._is_ready.clear()
                    await asyncio.sleep(RETRY_S)
        finally:
            await self._client.aclose()

    def _handle(self, received: Mapping[str, Any]) -> None:
        if received["type"] == "subscribe":
            self._redis.recovered()
            self._is_ready.set()
        elif message := self._inbox.open(received["data"]):
            waiting = self._waiting.get(str(message.get("actionId")))
            if waiting is not None:
                waiting.put_nowait(message)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, ReplyHub] = WeakKeyDictionary()


def get_reply_hub() -> ReplyHub:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = ReplyHub()
    return hub
