"""The pages of tasks on this worker, for people elsewhere: hears who looks at which, and what they
do. It lives while a task has a page here.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from decisions.infra.outages import Outage
from runners.invocation.event_loop import get_loop
from runs.live.channel import (
    RETRY_S,
    WORKERS_CHANNEL,
    connect,
    open_message,
    seal_message,
    viewers_channel,
)
from runs.live.open_pages import get_page_session, has_open_pages
from runs.live.page import LivePage

TICK_S = 0.5
log = logging.getLogger(__name__)


class PageBroadcaster:
    """Of this process; on the loop thread."""

    def __init__(self) -> None:
        self._shown: dict[str, LivePage] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._out = connect(blocking=False)
        self._redis = Outage(
            log,
            away="redis takes no live pictures of tasks' pages",
            back="redis takes live pictures again",
        )

    async def serve(self) -> None:
        """Serve until no task has a page here any more."""
        try:
            while has_open_pages():
                await self._listen()
        finally:
            for task_id in list(self._shown):
                self._close(task_id)
            await asyncio.gather(*self._closing.values())
            await self._out.aclose()

    async def _listen(self) -> None:
        from redis import RedisError

        client = connect(blocking=True)
        try:
            async with client.pubsub(ignore_subscribe_messages=True) as channel:
                await channel.subscribe(WORKERS_CHANNEL)
                self._redis.is_over()
                while has_open_pages():
                    told = await channel.get_message(timeout=TICK_S)
                    message = open_message(told["data"]) if told is not None else None
                    if message is not None:
                        await self._take(message)
                    self._let_go()
        except (RedisError, OSError) as error:
            self._redis.goes_on(error)
            await asyncio.sleep(RETRY_S)
        finally:
            await client.aclose()

    async def _take(self, message: Mapping[str, Any]) -> None:
        task_id = str(message.get("taskId"))
        if get_page_session(task_id) is None or task_id in self._closing:
            return  # whoever looks says so again
        page = self._shown.get(task_id)
        if page is None:
            page = self._shown[task_id] = LivePage(task_id, partial(self._publish, task_id))
        await page.take(message)

    def _let_go(self) -> None:
        for task_id in [one for one, page in self._shown.items() if page.is_over]:
            self._close(task_id)

    def _close(self, task_id: str) -> None:
        """Close a page beside: what it waits for holds no other up."""

        async def closed(page: LivePage) -> None:
            try:
                await page.close()
            except Exception:
                log.exception("the live page of %s was not closed in order", task_id)
            finally:
                del self._closing[task_id]

        self._closing[task_id] = asyncio.create_task(closed(self._shown.pop(task_id)))

    async def _publish(self, task_id: str, message: Mapping[str, Any]) -> None:
        from redis import RedisError

        try:
            await self._out.publish(viewers_channel(task_id), seal_message(message))
        except (RedisError, OSError) as error:
            self._redis.goes_on(error)


_serving: dict[int, Future[None]] = {}


def ensure_broadcaster() -> None:
    """Serve the pages of tasks, if there are some here and nobody does yet. From any thread."""
    serving = _serving.get(os.getpid())
    if serving is not None and serving.done() and not serving.cancelled():
        if (error := serving.exception()) is not None:
            log.error("the live pages of tasks ended over a defect", exc_info=error)
        del _serving[os.getpid()]
    if has_open_pages() and (serving is None or serving.done()):
        _serving[os.getpid()] = get_loop().submit(_serve())


async def _serve() -> None:
    await PageBroadcaster().serve()
