"""The event hub: one Redis subscription per process, one read per run and wake-up for all who
listen to it (mechanisms 20).

The rows are the truth. A message only says how far a run's log goes now; the hub then reads what is
new, once, and hands it to every listener's queue. One query every two seconds asks how far the
watched runs are, so that a lost message, or a Redis that is away, costs two seconds and nothing
else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import orjson
from django.conf import settings
from django.db import Error

from decisions.infra.outages import Outage
from decisions.infra.threads import in_thread
from runs.events.notify import CHANNEL
from runs.queries import runs
from runs.streaming.event_log import EventLog
from runs.streaming.subscriber import Listener
from runs.streaming.watcher import Watcher

if TYPE_CHECKING:
    from redis.asyncio.client import PubSub

POLL_S = 2.0
RUNS_AT_ONCE = 100  # runs that are read in one query
QUIET_S = 15.0  # a subscription that was silent for this long is asked whether it still stands
AGAIN_S = 1.0  # after a failure
log = logging.getLogger(__name__)


class Hub:
    """All listeners of one event loop; its tasks live only while somebody listens."""

    def __init__(self) -> None:
        self._logs: dict[str, EventLog] = {}
        self._unread: dict[EventLog, None] = {}
        self._has_unread = asyncio.Event()
        self._ask_now = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closing = False
        self._redis = Outage(
            log,
            away="no wake-ups from redis, asking the rows meanwhile",
            back="wake-ups from redis come again",
        )
        self._rows = Outage(
            log,
            away="the database tells no events, trying again",
            back="the database tells events again",
        )

    @asynccontextmanager
    async def listen(self, run_id: str) -> AsyncIterator[tuple[EventLog, Listener]]:
        """Register for a run's events. Read the run only inside: what happens before the first read
        is not missed.
        """
        watched = self._log_of(run_id)
        listener = Listener(watched.joins_at)
        watched.listeners.add(listener)
        self._begin(listener)
        try:
            yield watched, listener
        finally:
            listener.leave()
            watched.listeners.discard(listener)
            self._leave(watched)

    @asynccontextmanager
    async def watch(
        self, run_id: str, types: frozenset[str]
    ) -> AsyncIterator[tuple[EventLog, Watcher]]:
        """Register for the moments at which such an event is written; costs no reading of events.
        Read the run only inside, as with `listen`.
        """
        watched, watcher = self._log_of(run_id), Watcher(types)
        watched.watchers.add(watcher)
        self._begin(watcher)
        try:
            yield watched, watcher
        finally:
            watched.watchers.discard(watcher)
            self._leave(watched)

    def _log_of(self, run_id: str) -> EventLog:
        watched = self._logs.get(run_id)
        if watched is None:
            watched = self._logs[run_id] = EventLog(run_id, self._note_unread)
        return watched

    def _begin(self, follower: Listener | Watcher) -> None:
        if self._is_closing:
            follower.close()
        elif not self._tasks:
            work = (self._subscribe(), self._ask(), self._read())
            self._tasks = [asyncio.create_task(one) for one in work]

    def close(self) -> None:
        """Ask every reader to end, now and from now on: the server is about to stop."""
        self._is_closing = True
        for watched in self._logs.values():
            watched.close()

    def _leave(self, watched: EventLog) -> None:
        if not watched.listeners:
            self._unread.pop(watched, None)
        if not watched.is_followed and self._logs.get(watched.run_id) is watched:
            del self._logs[watched.run_id]
        if not self._logs:
            for task in self._tasks:
                task.cancel()
            self._tasks = []

    def _note_unread(self, watched: EventLog) -> None:
        if watched.listeners:
            self._unread[watched] = None
            self._has_unread.set()

    # --- reading ----------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Read what is new, many runs at once, one read after the other: so everything is handed
        out in order.
        """
        while True:
            await self._has_unread.wait()
            chosen = list(self._unread)[:RUNS_AT_ONCE]
            for watched in chosen:
                del self._unread[watched]
            if not self._unread:
                self._has_unread.clear()
            spans = {one.run_id: one.span() for one in chosen}
            try:
                found = await in_thread(runs.read_logs, spans)
            except Error as error:
                self._rows.goes_on(error)
                await asyncio.sleep(AGAIN_S)
                for watched in chosen:
                    self._note_unread(watched)
                continue
            self._rows.is_over()
            for watched in chosen:
                watched.hand_out(found.get(watched.run_id, ()))

    # --- how far the logs go ----------------------------------------------------------------------

    async def _ask(self) -> None:
        """Ask the rows how far the watched runs are: every two seconds, and at once where messages
        may have been missed.
        """
        while True:
            try:
                async with asyncio.timeout(POLL_S):
                    await self._ask_now.wait()
            except TimeoutError:
                pass
            self._ask_now.clear()
            asked = list(self._logs.values())
            try:
                seqs = await in_thread(runs.last_seqs, [one.run_id for one in asked])
            except Error as error:
                self._rows.goes_on(error)
                continue
            self._rows.is_over()
            self._told(asked, seqs)

    def _told(self, asked: Sequence[EventLog], seqs: Mapping[str, int]) -> None:
        for watched in asked:
            if watched.run_id in seqs:
                watched.goes_to(seqs[watched.run_id])
            else:  # the run is gone; its readers find out when they look
                watched.is_gone()

    async def _subscribe(self) -> None:
        from redis import RedisError
        from redis.asyncio import Redis

        while True:
            # A subscriber waits for as long as nothing happens: no socket timeout.
            client = Redis.from_url(
                settings.REDIS_URL, socket_timeout=None, socket_connect_timeout=2
            )
            try:
                async with client.pubsub(ignore_subscribe_messages=False) as channel:
                    await channel.subscribe(CHANNEL)
                    await self._hear(channel)
            except (RedisError, OSError) as error:
                self._redis.goes_on(error)
            finally:
                await client.aclose()
            await asyncio.sleep(AGAIN_S)

    async def _hear(self, channel: PubSub) -> None:
        """Take messages until the connection breaks, or is silent when it is asked.

        Raises:
            OSError, RedisError: It broke.
        """
        asked = False
        while True:
            message = await channel.get_message(timeout=QUIET_S)
            if message is None:
                if asked:
                    raise ConnectionError("the connection is silent")
                await channel.ping()
                asked = True
                continue
            asked = False
            if message["type"] == "subscribe":
                self._redis.is_over()
                self._ask_now.set()  # what was said before nobody heard
            elif message["type"] == "message":
                self._heard(message["data"])

    def _heard(self, message: bytes) -> None:
        """Note what a message tells; what others put on the channel tells nothing."""
        try:
            said = orjson.loads(message)
            watched, seq = self._logs.get(said["runId"]), said["seq"]
            types = frozenset(said["types"])
        except (ValueError, TypeError, KeyError):
            return
        if watched is not None and type(seq) is int:
            watched.goes_to(seq, types)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def get_hub() -> Hub:
    """Return the hub of the running event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())
