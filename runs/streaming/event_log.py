"""A run's log as the hub sees it: how far it goes, who follows it, and what they are handed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Any

from runs.streaming.subscriber import Batch, Event, Listener
from runs.streaming.watcher import Watcher

EVENTS_AT_ONCE = 200  # events of a run that are read at once


class EventLog:
    """A run that somebody listens to.

    Attributes:
        seq: the last event that was handed out; None until the first reader says where it stands.
        known: how far the log goes, as far as anybody said.
    """

    def __init__(self, run_id: str, on_news: Callable[[EventLog], None]) -> None:
        self.run_id = run_id
        self.listeners: set[Listener] = set()
        self.watchers: set[Watcher] = set()
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

    @property
    def is_followed(self) -> bool:
        """Whether anybody listens or watches."""
        return bool(self.listeners or self.watchers)

    def close(self) -> None:
        """Ask all who listen or watch to end."""
        for listener in self.listeners:
            listener.close()
        for watcher in self.watchers:
            watcher.close()

    def is_gone(self) -> None:
        """Have everybody look: the run has no row any more."""
        for listener in self.listeners:
            listener.lose_track()
        for watcher in self.watchers:
            watcher.look()

    def goes_to(self, seq: int, types: Iterable[str] | None = None) -> None:
        """Note how far the log goes, and by what types of events, where that is known."""
        for watcher in self.watchers:
            watcher.told(seq, types)
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
