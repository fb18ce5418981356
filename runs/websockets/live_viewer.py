"""A web process's subscription to a task's live page: messages from the worker, and input to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from decisions.foundation.infra.cancellation import cancel_and_wait
from decisions.foundation.infra.redis import connect, messages_of, subscription
from decisions.foundation.security.sealed_messages import Inbox, seal_message
from runs.live.channel import ANNOUNCE_S, WORKERS_CHANNEL, viewers_channel
from runs.live.viewer_queue import Message, ViewerQueue

if TYPE_CHECKING:
    from redis.asyncio import Redis


class PageSubscription:
    """The subscription of one viewer.

    Attributes:
        messages: from the worker, to iterate over; the newest picture replaces older ones.
        received_at: `time.monotonic()` of the worker's last message, None before the first.
    """

    def __init__(self, task_id: str, client: Redis) -> None:
        self._task_id, self._client = task_id, client
        self._inbox = Inbox(viewers_channel(task_id))
        self.messages = ViewerQueue()
        self.received_at: float | None = None

    async def send(self, message: Message) -> None:
        """Publish a message to the worker with the page, if there is one.

        Raises:
            redis_errors(): Redis is unavailable.
        """
        payload = seal_message(WORKERS_CHANNEL, {"taskId": self._task_id, **message})
        await self._client.publish(WORKERS_CHANNEL, payload)

    def receive(self, sealed: bytes) -> None:
        """Queue a message that came over Redis; ignore one that `Inbox.open` refuses."""
        message = self._inbox.open(sealed)
        if message is None:
            return
        self.received_at = time.monotonic()
        if message.get("type") == "live_frame":
            self.messages.set_picture(message)
        else:
            self.messages.add_notice(message)

    async def announce(self) -> None:
        """Announce the viewer to the worker every ANNOUNCE_S, until canceled.

        Raises:
            redis_errors(): Redis is unavailable.
        """
        is_new = True
        while True:
            await self.send({"kind": "watch", "isNew": is_new})
            is_new = False
            await asyncio.sleep(ANNOUNCE_S)


@asynccontextmanager
async def subscribe_to_page(
    task_id: str,
) -> AsyncIterator[tuple[PageSubscription, asyncio.Task[None]]]:
    """Subscribe to a task's page; yields the subscription and the task that receives its messages,
    which ends with an error when Redis becomes unavailable.

    Raises:
        redis_errors(): Redis is unavailable.
    """
    publisher = connect(blocking=False)
    page = PageSubscription(task_id, publisher)
    try:
        async with subscription(viewers_channel(task_id)) as channel:

            async def receive() -> None:
                async for message in messages_of(channel):
                    if message["type"] == "message":
                        page.receive(message["data"])

            receiving = asyncio.create_task(receive())
            try:
                yield page, receiving
            finally:
                await cancel_and_wait([receiving])
    finally:
        await publisher.aclose()
