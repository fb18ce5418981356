"""The worker's side of live pages: receives what viewers announce and do, and publishes the pages
they watch. It runs while a task has an open page in this process.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.redis import connect, redis_errors, subscription
from decisions.foundation.security.sealed_messages import Inbox, seal_message
from runners.invocation.event_loop import get_loop
from runs.live.channel import RETRY_S, WORKERS_CHANNEL, viewers_channel
from runs.live.open_pages import get_page_session, has_open_pages
from runs.live.page import LivePage

TICK_S = 0.5
log = logging.getLogger(__name__)


class PageBroadcaster:
    """The live pages of this process. Use it on the loop thread."""

    def __init__(self) -> None:
        self._pages: dict[str, LivePage] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._inbox = Inbox(WORKERS_CHANNEL)
        self._publisher = connect(blocking=False)
        self._redis = Outage(
            log,
            on_failure="live pages cannot be published to redis",
            on_recovery="live pages are published to redis again",
        )

    async def serve(self) -> None:
        """Serve until no task has an open page in this process."""
        try:
            while has_open_pages():
                await self._receive()
        finally:
            for task_id in list(self._pages):
                self._close(task_id)
            await asyncio.gather(*self._closing.values())
            await self._publisher.aclose()

    async def _receive(self) -> None:
        try:
            async with subscription(WORKERS_CHANNEL) as channel:
                self._redis.recovered()
                while has_open_pages():
                    received = await channel.get_message(True, TICK_S)
                    message = self._inbox.open(received["data"]) if received is not None else None
                    if message is not None:
                        await self._dispatch(message)
                    self._close_ended()
        except redis_errors() as error:
            self._redis.failed(error)
            await asyncio.sleep(RETRY_S)

    async def _dispatch(self, message: Mapping[str, Any]) -> None:
        task_id = str(message.get("taskId"))
        if get_page_session(task_id) is None or task_id in self._closing:
            return  # the viewer announces itself again
        page = self._pages.get(task_id)
        if page is None:
            page = self._pages[task_id] = LivePage(task_id, partial(self._publish, task_id))
        await page.handle(message)

    def _close_ended(self) -> None:
        for task_id in [one for one, page in self._pages.items() if page.has_ended]:
            self._close(task_id)

    def _close(self, task_id: str) -> None:
        """Close a page in a task of its own, so that a slow one does not delay the others."""

        async def close(page: LivePage) -> None:
            try:
                await page.close()
            except Exception:
                log.exception("the live page of %s could not be closed cleanly", task_id)
            finally:
                del self._closing[task_id]

        self._closing[task_id] = asyncio.create_task(close(self._pages.pop(task_id)))

    async def _publish(self, task_id: str, message: Mapping[str, Any]) -> None:
        try:
            channel = viewers_channel(task_id)
            await self._publisher.publish(channel, seal_message(channel, message))
        except redis_errors() as error:
            self._redis.failed(error)


_serving: dict[int, Future[None]] = {}


def ensure_broadcaster() -> None:
    """Start this process's broadcaster if a task has an open page and none is running. From any
    thread.
    """
    serving = _serving.get(os.getpid())
    if serving is not None and serving.done() and not serving.cancelled():
        if (error := serving.exception()) is not None:
            log.error("the broadcaster of live pages failed", exc_info=error)
        del _serving[os.getpid()]
    if has_open_pages() and (serving is None or serving.done()):
        _serving[os.getpid()] = get_loop().submit(_serve())


async def _serve() -> None:
    await PageBroadcaster().serve()
