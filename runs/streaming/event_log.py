"""A run's event log inside the hub: how far it has been read, and its subscribers and watchers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Any

from runs.streaming.subscriber import Batch, Event, Subscriber
from runs.streaming.watcher import Watcher

EVENTS_AT_ONCE = 200  # events of one run per read


class EventLog:
    """The log of a run that at least one reader follows.

    Args:
        on_unread: called when the log has events that were not distributed yet.

    Attributes:
        seq: of the last event that was distributed; None until the first reader has read.
        known_seq: where the log ends, as far as messages and polls have reported.
    """

    def __init__(self, run_id: str, on_unread: Callable[[EventLog], None]) -> None:
        self.run_id = run_id
        self.subscribers: set[Subscriber] = set()
        self.watchers: set[Watcher] = set()
        self.seq: int | None = None
        self.known_seq = 0
        # What `known_seq` was at the last `next_span`, and where that span ended.
        self._known_at_read = self._read_upto = 0
        self._on_unread = on_unread
        self._reads: dict[Hashable, asyncio.Future[Any]] = {}

    def can_join_at(self, seq: int) -> bool:
        """Return whether a reader that has everything up to `seq` gets every later event."""
        if self.seq is None:
            self.seq = seq
            if self.known_seq > seq:
                self._on_unread(self)
        return seq >= self.seq

    @property
    def has_followers(self) -> bool:
        """Whether there is a subscriber or a watcher."""
        return bool(self.subscribers or self.watchers)

    def close(self) -> None:
        """Signal all subscribers and watchers to stop."""
        for subscriber in self.subscribers:
            subscriber.close()
        for watcher in self.watchers:
            watcher.close()

    def reread(self) -> None:
        """Have every reader read the database: the run was deleted, or events were missed."""
        for subscriber in self.subscribers:
            subscriber.fall_behind()
        for watcher in self.watchers:
            watcher.check_now()

    def advance_to(self, seq: int, types: Iterable[str] | None = None) -> None:
        """Record where the log ends, and the types of the new events where they are known."""
        for watcher in self.watchers:
            watcher.notify(seq, types)
        if seq > self.known_seq:
            self.known_seq = seq
            if self.seq is not None:
                self._on_unread(self)

    def next_span(self) -> tuple[int, int]:
        """Return which events to read next: after the first number, up to the second."""
        self._known_at_read = self.known_seq
        after = self.seq or 0
        self._read_upto = min(self.known_seq, after + EVENTS_AT_ONCE)
        return after, self._read_upto

    def distribute(self, events: Sequence[Event]) -> None:
        """Give every subscriber the events of the last span."""
        before = self.seq or 0
        self.seq = events[-1]["seq"] if events else before
        if self.seq < self._read_upto and self.known_seq == self._known_at_read:
            self.known_seq = self.seq  # the message was wrong: the database has fewer events
        if self.known_seq > self.seq:
            self._on_unread(self)
        if not events:
            return
        is_gapless = events[0]["seq"] == before + 1 and self.seq - before == len(events)
        batch = Batch(events)
        for subscriber in self.subscribers:
            if is_gapless:
                subscriber.offer(batch)
            else:
                subscriber.fall_behind()

    async def read_once(self, key: Hashable, read: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of `read`, shared by all concurrent and later callers with this key."""
        if key not in self._reads:
            reading = self._reads[key] = asyncio.ensure_future(read())
            reading.add_done_callback(lambda done: self._forget_failure(key, done))
        return await asyncio.shield(self._reads[key])

    def forget_read(self, key: Hashable) -> None:
        """Forget a result that is older than its key says: the next caller reads again."""
        self._reads.pop(key, None)

    def _forget_failure(self, key: Hashable, done: asyncio.Future[Any]) -> None:
        if done.cancelled() or done.exception() is not None:
            self.forget_read(key)
