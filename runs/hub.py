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
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import orjson
from django.conf import settings
from django.db import Error

from decisions.outages import Outage
from decisions.threads import in_thread
from runs import selectors
from runs.listener import Batch, Event, Listener
from runs.wakeups import CHANNEL

if TYPE_CHECKING:
    from redis.asyncio.client import PubSub

POLL_S = 2.0
RUNS_AT_ONCE = 100  # runs that are read in one query
EVENTS_AT_ONCE = 200  # events of a run that are read at once
QUIET_S = 15.0  # a subscription that was silent for this long is asked whether it still stands
AGAIN_S = 1.0  # after a failure
log = logging.getLogger(__name__)


class Log:
    """A run that somebody listens to.

    Attributes:
        seq: the last event that was handed out; None until the first reader says where it stands.
        known: how far the log goes, as far as anybody said.
    """

    def __init__(self, run_id: str, on_news: Callable[[Log], None]) -> None:
        self.run_id = run_id
        self.listeners: set[Listener] = set()
        self.seq: int | None = None
        self.known = 0
        self._said = self._upto = 0  # what `known` was, and how far the read goes, at the last span
        self._on_news = on_news
        self._reads: dict[Hashable, asyncio.Future[Any]] = {}

    def joins_at(self, seq: int) -> bool:
        """Tell whether a reader that has everything up to `seq` misses nothing from now on."""
        if self.seq is None:
            self.seq = seq
            if self.known > seq:
                self._on_news(self)
        return seq >= self.seq

    def goes_to(self, seq: int) -> None:
        """Note how far the log goes."""
        if seq > self.known:
            self.known = seq
            if self.seq is not None:
                self._on_news(self)

    def span(self) -> tuple[int, int]:
        """Return which events to read next: behind the first number, up to the second."""
        self._said = self.known
        after = self.seq or 0
        self._upto = min(self.known, after + EVENTS_AT_ONCE)
        return after, self._upto

    def hand_out(self, events: Sequence[Event]) -> None:
        """Give every listener the events of the span."""
        before = self.seq or 0
        self.seq = events[-1]["seq"] if events else before
        if self.seq < self._upto and self.known == self._said:
            self.known = self.seq  # the message was wrong: the rows are the truth
        if self.known > self.seq:
            self._on_news(self)
        if not events:
            return
        whole = events[0]["seq"] == before + 1 and self.seq - before == len(events)
        batch = Batch(events)
        for listener in self.listeners:
            if whole:
                listener.offer(batch)
            else:
                listener.lose_track()

    async def once(self, key: Hashable, read: Callable[[], Awaitable[Any]]) -> Any:
        """Read something for all who ask under one key; the first of them begins it."""
        if key not in self._reads:
            reading = self._reads[key] = asyncio.ensure_future(read())
            reading.add_done_callback(lambda done: self._forget_failure(key, done))
        return await asyncio.shield(self._reads[key])

    def _forget_failure(self, key: Hashable, done: asyncio.Future[Any]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._reads.pop(key, None)


class Hub:
    """All listeners of one event loop; its tasks live only while somebody listens."""

    def __init__(self) -> None:
        self._logs: dict[str, Log] = {}
        self._unread: dict[Log, None] = {}
        self._has_unread = asyncio.Event()
        self._ask_now = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closing = False
        self._redis = Outage(log, away="no wake-ups from redis, asking the rows meanwhile",
                             back="wake-ups from redis come again")  # fmt: skip
        self._rows = Outage(log, away="the database tells no events, trying again",
                            back="the database tells events again")  # fmt: skip

    @asynccontextmanager
    async def listen(self, run_id: str) -> AsyncIterator[tuple[Log, Listener]]:
        """Register for a run's events. Read the run only inside: what happens before the first read
        is not missed.
        """
        watched = self._logs.get(run_id)
        if watched is None:
            watched = self._logs[run_id] = Log(run_id, self._note_unread)
        listener = Listener(watched.joins_at)
        watched.listeners.add(listener)
        if self._is_closing:
            listener.close()
        elif not self._tasks:
            work = (self._subscribe(), self._ask(), self._read())
            self._tasks = [asyncio.create_task(one) for one in work]
        try:
            yield watched, listener
        finally:
            self._leave(watched, listener)

    def close(self) -> None:
        """Ask every reader to end, now and from now on: the server is about to stop."""
        self._is_closing = True
        for watched in self._logs.values():
            for listener in watched.listeners:
                listener.close()

    def _leave(self, watched: Log, listener: Listener) -> None:
        listener.leave()
        watched.listeners.discard(listener)
        if not watched.listeners:
            self._unread.pop(watched, None)
            if self._logs.get(watched.run_id) is watched:
                del self._logs[watched.run_id]
        if not self._logs:
            for task in self._tasks:
                task.cancel()
            self._tasks = []

    def _note_unread(self, watched: Log) -> None:
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
                found = await in_thread(selectors.read_logs, spans)
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
                seqs = await in_thread(selectors.last_seqs, [one.run_id for one in asked])
            except Error as error:
                self._rows.goes_on(error)
                continue
            self._rows.is_over()
            self._told(asked, seqs)

    def _told(self, asked: Sequence[Log], seqs: Mapping[str, int]) -> None:
        for watched in asked:
            if watched.run_id in seqs:
                watched.goes_to(seqs[watched.run_id])
            else:  # the run is gone; its readers find out when they look
                for listener in watched.listeners:
                    listener.lose_track()

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
        except (ValueError, TypeError, KeyError):
            return
        if watched is not None and type(seq) is int:
            watched.goes_to(seq)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def get_hub() -> Hub:
    """Return the hub of the running event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())
