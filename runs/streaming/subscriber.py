"""A reader's place in a run's log: what the hub hands out, and the bounded queue that it goes into
(mechanisms 20).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson

from decisions.infra.json_line import one_line
from runs.events.types import FINAL

Event = Mapping[str, Any]
QUEUE_EVENTS = 512  # a reader that is further behind than this reads the rows itself


class Batch:
    """Events of one run that follow each other without a gap; all its listeners share them."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.first: int = events[0]["seq"]
        self.last: int = events[-1]["seq"]

    @cached_property
    def frames(self) -> bytes:
        """The events as `text/event-stream`, put in words once for everybody."""
        return frames_of(self.events)

    @cached_property
    def is_final(self) -> bool:
        """Whether the run ended with the last of them."""
        return self.events[-1]["type"] in FINAL

    def behind(self, seq: int) -> Batch:
        """Return those behind `seq`; there has to be one."""
        return Batch(self.events[seq - self.first + 1 :])


def frames_of(events: Sequence[Event]) -> bytes:
    """Return events in the words of `text/event-stream`."""
    return b"".join(
        b"id: %d\ndata: %b\n\n" % (event["seq"], one_line(orjson.dumps(event))) for event in events
    )


class Listener:
    """Somebody who reads a run's events. Used on the event loop alone.

    It begins behind: its reader reads the rows and says with `has` how far it came. From there on
    the hub fills the queue, until it overflows or a gap shows; then the reader is behind again.

    Args:
        joins_at: whether a reader that has everything up to a seq misses nothing from now on.
    """

    def __init__(self, joins_at: Callable[[int], bool]) -> None:
        self._joins_at = joins_at
        self._seq: int | None = None  # of the last event in the queue, or taken from it
        self._queue: deque[Batch] = deque()
        self._queued = 0
        self._waiting: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.is_closed = False

    @property
    def is_behind(self) -> bool:
        """Whether the reader has to read the rows next; what is queued comes first."""
        return self._seq is None and not self._queue

    @property
    def has_news(self) -> bool:
        """Whether there is something to take or to do."""
        return bool(self._queue) or self._seq is None or self.is_closed

    def has(self, seq: int, *, of: int) -> None:
        """Say that the reader has every event up to `seq`, read while it was behind, `of` those
        that there are. A caller may name a `seq` that the run has not come to yet.
        """
        if self._joins_at(of):
            self._seq = max(seq, of)

    def offer(self, batch: Batch) -> None:
        """Queue what is new in the batch, or fall behind."""
        if self._seq is None:
            return
        if batch.last <= self._seq:
            if batch.is_final:  # before the seq that the caller named: nothing else ever comes
                self.lose_track()
            return
        if batch.first <= self._seq:
            batch = batch.behind(self._seq)
        size = len(batch.events)
        if batch.first != self._seq + 1 or self._queued + size > QUEUE_EVENTS:
            self.lose_track()
            return
        self._queue.append(batch)
        self._queued += size
        self._seq = batch.last
        self.wake()

    def lose_track(self) -> None:
        """Fall behind: what is queued is still good, what follows is read from the rows."""
        self._seq = None
        self.wake()

    def take(self) -> list[Batch]:
        """Return what is queued, in order."""
        taken = list(self._queue)
        self._queue.clear()
        self._queued = 0
        return taken

    def wake(self) -> None:
        """Let `news` return."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def wake_every(self, seconds: float) -> None:
        """Let `news` return now and then, also when there is none: one timer, whatever comes."""
        loop = asyncio.get_running_loop()

        def tick() -> None:
            self.wake()
            self._timer = loop.call_later(seconds, tick)

        self._timer = loop.call_later(seconds, tick)

    async def news(self, timeout_s: float | None = None) -> None:
        """Return as soon as there is something to take or to do, or when the time is up."""
        if self.has_news:
            return
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            if timeout_s is None:
                await self._waiting
            else:
                await asyncio.wait({self._waiting}, timeout=timeout_s)
        finally:
            self._waiting = None

    def close(self) -> None:
        """Ask the reader to end; what is queued is still good."""
        self.is_closed = True
        self.wake()

    def leave(self) -> None:
        """Let go of everything; the reader is gone."""
        if self._timer is not None:
            self._timer.cancel()
        self._queue.clear()
