"""The event hub of a web process: one Redis subscription, and one read of each run's new events for
all of that run's readers. Without readers it makes no statement.

The database is the source of truth. A Redis message only reports where a run's log ends; the hub
then reads the new events once and puts them into every subscriber's queue. One query every
POLL_S seconds asks where the followed logs end, so a lost message or an unavailable Redis delays
events by at most that long. A loop that ends with an error is started again (`_supervise`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from weakref import WeakKeyDictionary

import orjson
from django.db import Error

from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.redis import messages_of, redis_errors, subscription
from decisions.foundation.infra.threads import in_thread
from runners import metrics
from runs.events.notify import CHANNEL
from runs.queries import runs
from runs.streaming.changes import ChangeFeed, ChangeReader
from runs.streaming.event_log import EventLog
from runs.streaming.subscriber import Reader, Subscriber
from runs.streaming.watcher import Watcher

POLL_S = 2.0
RUNS_AT_ONCE = 100  # runs per query
LINGER_S = 30.0  # the subscription is kept this long after the last reader left, for the next one
RETRY_S = 1.0  # pause after a failure
LONGEST_RETRY_S = 30.0  # the pause doubles up to this after each error of a loop
FAULT_S = 60.0  # how long a failed loop is reported by /readyz
log = logging.getLogger(__name__)


class Hub:
    """The readers of one event loop. Its background tasks start with the first reader, and end
    LINGER_S after the last one; that for the changes of the admin runs only while a page is open.
    """

    def __init__(self) -> None:
        self._logs: dict[str, EventLog] = {}
        self._changes = ChangeFeed()
        self._unread: dict[EventLog, None] = {}
        self._has_unread = asyncio.Event()
        self._poll_now = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._end: asyncio.TimerHandle | None = None
        self._is_closing = False
        self._failed_at: dict[str, float] = {}  # by loop, on the monotonic clock
        self._redis = Outage(
            log,
            on_failure="no event notifications from redis, polling the database",
            on_recovery="event notifications from redis work again",
        )
        self._database = Outage(
            log,
            on_failure="events cannot be read from the database, retrying",
            on_recovery="events can be read from the database again",
        )

    @asynccontextmanager
    async def subscribe(self, run_id: str) -> AsyncIterator[tuple[EventLog, Subscriber]]:
        """Subscribe to a run's events. Read the run only inside the block: then no event between
        the subscription and the first read is missed.
        """
        followed = self._log_of(run_id)
        subscriber = Subscriber(followed.can_join_at)
        followed.subscribers.add(subscriber)
        self._start(subscriber)
        try:
            yield followed, subscriber
        finally:
            subscriber.dispose()
            followed.subscribers.discard(subscriber)
            self._leave(followed)

    @asynccontextmanager
    async def watch(
        self, run_id: str, types: frozenset[str]
    ) -> AsyncIterator[tuple[EventLog, Watcher]]:
        """Be woken when an event of these types is written, without reading the events. Read the
        run only inside the block, as with `subscribe`.
        """
        followed, watcher = self._log_of(run_id), Watcher(types)
        followed.watchers.add(watcher)
        self._start(watcher)
        try:
            yield followed, watcher
        finally:
            followed.watchers.discard(watcher)
            self._leave(followed)

    @asynccontextmanager
    async def follow_changes(self, topics: frozenset[str]) -> AsyncIterator[ChangeReader]:
        """Receive which rows of the installation changed, of these topics."""
        reader = ChangeReader(topics)
        self._changes.join(reader)
        self._start(reader)
        try:
            yield reader
        finally:
            self._changes.leave(reader)
            if not self._changes.readers:
                self._stop("changes")
            self._end_if_unused()

    def close(self) -> None:
        """Signal every present and future reader to stop: the server is shutting down."""
        self._is_closing = True
        for followed in self._logs.values():
            followed.close()
        for reader in self._changes.readers:
            reader.close()
        self._end_if_unused()

    def _log_of(self, run_id: str) -> EventLog:
        followed = self._logs.get(run_id)
        if followed is None:
            followed = self._logs[run_id] = EventLog(run_id, self._mark_unread)
        return followed

    def _start(self, reader: Reader) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if self._is_closing:
            reader.close()
            return
        loops = {
            "notifications": self._subscribe_to_redis,
            "poll": self._poll,
            "read": self._read,
        }
        if self._changes.readers:
            loops["changes"] = self._changes.poll
        for name, loop in loops.items():
            if name not in self._tasks:
                self._tasks[name] = asyncio.create_task(self._supervise(name, loop))

    def _leave(self, followed: EventLog) -> None:
        if not followed.subscribers:
            self._unread.pop(followed, None)
        if not followed.has_followers and self._logs.get(followed.run_id) is followed:
            del self._logs[followed.run_id]
        self._end_if_unused()

    def _end_if_unused(self) -> None:
        """End the tasks later, at once while closing, if no reader is left."""
        if not self._tasks or self._logs or self._changes.readers:
            return
        if self._is_closing:
            self._stop(*self._tasks)
        elif self._end is None:
            end = partial(self._stop, *self._tasks)
            self._end = asyncio.get_running_loop().call_later(LINGER_S, end)

    def _stop(self, *names: str) -> None:
        for name in names:
            if (task := self._tasks.pop(name, None)) is not None:
                task.cancel()

    def _mark_unread(self, followed: EventLog) -> None:
        if followed.subscribers:
            self._unread[followed] = None
            self._has_unread.set()

    # --- supervision ------------------------------------------------------------------------------

    def fault(self) -> str | None:
        """Return which loops ended with an error within the last FAULT_S; None if none did."""
        now = time.monotonic()
        failed = sorted(name for name, at in self._failed_at.items() if now - at < FAULT_S)
        if not failed:
            return None
        return (
            f"The loop of event streams failed and is started again: {', '.join(failed)}. Events"
            " may be late; see the log of the web process."
        )

    async def _supervise(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        """Run a loop; after any error log it, pause, and start the loop again."""
        retry_s = RETRY_S
        while True:
            started_at = time.monotonic()
            try:
                await loop()
            except Exception:
                log.exception("the loop %r of the event hub failed and is started again", name)
            self._failed_at[name] = time.monotonic()
            metrics.event_hub_restarted(name)
            if self._failed_at[name] - started_at > LONGEST_RETRY_S:
                retry_s = RETRY_S
            await asyncio.sleep(retry_s)
            retry_s = min(retry_s * 2, LONGEST_RETRY_S)
            for followed in self._logs.values():
                followed.reread()

    # --- reading ----------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Read and distribute new events, many runs per query. One query runs at a time, so events
        are distributed in order.
        """
        while True:
            await self._has_unread.wait()
            chosen = list(self._unread)[:RUNS_AT_ONCE]
            for followed in chosen:
                del self._unread[followed]
            if not self._unread:
                self._has_unread.clear()
            spans = {one.run_id: one.next_span() for one in chosen}
            try:
                found = await in_thread(runs.read_logs, spans)
            except Error as error:
                self._database.failed(error)
                await asyncio.sleep(RETRY_S)
                for followed in chosen:
                    self._mark_unread(followed)
                continue
            self._database.recovered()
            for followed in chosen:
                followed.distribute(found.get(followed.run_id, ()))

    # --- where the logs end -----------------------------------------------------------------------

    async def _poll(self) -> None:
        """Query where the followed logs end: every POLL_S, and at once after a reconnect, when
        messages may have been missed.
        """
        while True:
            try:
                async with asyncio.timeout(POLL_S):
                    await self._poll_now.wait()
            except TimeoutError:
                pass
            self._poll_now.clear()
            if not (followed := list(self._logs.values())):
                continue
            try:
                seqs = await in_thread(runs.last_seqs, [one.run_id for one in followed])
            except Error as error:
                self._database.failed(error)
                continue
            self._database.recovered()
            self._advance(followed, seqs)

    def _advance(self, polled: Sequence[EventLog], seqs: Mapping[str, int]) -> None:
        for followed in polled:
            if followed.run_id in seqs:
                followed.advance_to(seqs[followed.run_id])
            else:
                followed.reread()

    async def _subscribe_to_redis(self) -> None:
        while True:
            try:
                async with subscription(CHANNEL) as channel:
                    async for message in messages_of(channel):
                        if message["type"] == "subscribe":
                            self._redis.recovered()
                            self._poll_now.set()  # messages before the subscription were missed
                        else:
                            self._handle(message["data"])
            except redis_errors() as error:
                self._redis.failed(error)
            await asyncio.sleep(RETRY_S)

    def _handle(self, message: bytes) -> None:
        """Advance the log that a message names; ignore messages in another format."""
        try:
            data = orjson.loads(message)
            if "topic" in data:
                self._changes.add(data["topic"], data["id"])
                return
            followed, seq = self._logs.get(data["runId"]), data["seq"]
            types = frozenset(data["types"])
        except (ValueError, TypeError, KeyError):
            return
        self._changes.add_events(data["runId"], types)
        if followed is not None and type(seq) is int:
            followed.advance_to(seq, types)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def get_hub() -> Hub:
    """Return the hub of the running event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())
