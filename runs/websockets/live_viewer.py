"""Looking at a task's live page from a web process: what its worker tells, the newest picture
first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from decisions.infra.cancellation import ended
from runs.live.channel import (
    WATCH_S,
    WORKERS_CHANNEL,
    connect,
    open_message,
    seal_message,
    viewers_channel,
)
from runs.live.viewer_queue import Message, ViewerQueue

if TYPE_CHECKING:
    from redis.asyncio import Redis


class PageSubscription:
    """Of one reader.

    Attributes:
        told: what the worker tells, to iterate over.
        heard_at: `time.monotonic()` of the worker's last word, None before the first.
    """

    def __init__(self, task_id: str, client: Redis) -> None:
        self._task_id, self._client = task_id, client
        self.told = ViewerQueue()
        self.heard_at: float | None = None

    async def say(self, message: Message) -> None:
        """Tell the worker that has the page; nobody says whether one does. Raises RedisError."""
        await self._client.publish(WORKERS_CHANNEL, seal_message({"taskId": self._task_id, **message}))

    def note(self, sealed: bytes) -> None:
        """Take what came over Redis."""
        message = open_message(sealed)
        if message is None:
            return
        self.heard_at = time.monotonic()
        if message.get("type") == "live_frame":
            self.told.set_picture(message)
        else:
            self.told.add_notice(message)

    async def keep_saying(self) -> None:
        """Say again and again that somebody looks. Raises RedisError."""
        is_new = True
        while True:
            await self.say({"kind": "watch", "isNew": is_new})
            is_new = False
            await asyncio.sleep(WATCH_S)


@asynccontextmanager
async def watch(task_id: str) -> AsyncIterator[tuple[PageSubscription, asyncio.Task[None]]]:
    """Look at a task's page; the task that hears its worker ends where Redis goes away.

    Raises:
        RedisError, OSError: It is away.
    """
    ears, mouth = connect(blocking=True), connect(blocking=False)
    try:
        async with ears.pubsub(ignore_subscribe_messages=True) as channel:
            await channel.subscribe(viewers_channel(task_id))
            looking = PageSubscription(task_id, mouth)

            async def hear() -> None:
                while True:
                    told = await channel.get_message(timeout=WATCH_S)
                    if told is not None:
                        looking.note(told["data"])

            hearing = asyncio.create_task(hear())
            try:
                yield looking, hearing
            finally:
                await ended([hearing])
    finally:
        await ears.aclose()
        await mouth.aclose()
