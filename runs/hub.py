"""The event hub: one Redis subscription per process wakes everybody who waits for a run (mechanisms
20).

A wake-up that was lost is made good by one query every two seconds for the last_seq of all watched
runs; while Redis is away that query is asked more often.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import Error

from decisions.threads import in_thread
from runs.models import Run
from runs.wakeups import CHANNEL

POLL_S = 2.0
POLL_WITHOUT_REDIS_S = 0.3
log = logging.getLogger(__name__)


class Listener:
    """Somebody who waits for a run."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Say that the run has news."""
        self._event.set()

    async def changed(self, timeout_s: float) -> bool:
        """Wait for news since the last call; tell whether there is some."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        woken = self._event.is_set()
        self._event.clear()
        return woken


class Hub:
    """All listeners of one event loop; its two tasks live only while somebody listens."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = defaultdict(set)
        self._seen: dict[str, int] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._subscribed = False

    @asynccontextmanager
    async def listen(self, run_id: str) -> AsyncIterator[Listener]:
        """Register for a run's news. Read the run only inside: what happens before the first read
        is not missed.
        """
        listener = Listener()
        self._listeners[run_id].add(listener)
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._subscribe()),
                asyncio.create_task(self._poll()),
            ]
        try:
            yield listener
        finally:
            self._leave(run_id, listener)

    def _leave(self, run_id: str, listener: Listener) -> None:
        self._listeners[run_id].discard(listener)
        if not self._listeners[run_id]:
            del self._listeners[run_id]
            self._seen.pop(run_id, None)
        if not self._listeners:
            for task in self._tasks:
                task.cancel()
            self._tasks = []

    def _wake(self, run_id: str) -> None:
        for listener in self._listeners.get(run_id, ()):
            listener.wake()

    async def _subscribe(self) -> None:
        from redis import RedisError
        from redis.asyncio import Redis

        while True:
            # A subscriber waits for as long as nothing happens: no socket timeout.
            client = Redis.from_url(
                settings.REDIS_URL, socket_timeout=None, socket_connect_timeout=2
            )
            try:
                async with client.pubsub(ignore_subscribe_messages=True) as channel:
                    await channel.subscribe(CHANNEL)
                    self._subscribed = True
                    async for message in channel.listen():
                        self._wake(_run_id_of(message["data"]))
            except (RedisError, OSError) as error:
                log.warning("no wake-ups from redis, polling meanwhile: %s", error)
            finally:
                self._subscribed = False
                await client.aclose()
            await asyncio.sleep(1)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_S if self._subscribed else POLL_WITHOUT_REDIS_S)
            try:
                seqs = await in_thread(_last_seqs, list(self._listeners))
            except Error as error:
                log.warning("the runs cannot be asked for news, trying again: %s", error)
                continue
            for run_id, seq in seqs:
                if self._seen.get(run_id) != seq:
                    self._seen[run_id] = seq
                    self._wake(run_id)


def _run_id_of(message: bytes) -> str:
    """Return whose news a message tells; of what others put on the channel, nobody's."""
    try:
        return str(json.loads(message)["runId"])
    except (ValueError, TypeError, KeyError):
        return ""


def _last_seqs(run_ids: list[str]) -> list[tuple[str, int]]:
    return list(Run.objects.filter(id__in=run_ids).values_list("id", "last_seq"))


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def get_hub() -> Hub:
    """Return the hub of the running event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())
