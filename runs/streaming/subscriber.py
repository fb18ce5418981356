"""One reader of a run's event log: a bounded queue that the hub fills, and the batches in it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson

from decisions.foundation.validation.json_output import escape_line_separators
from runs.events.types import FINAL

Event = Mapping[str, Any]
QUEUE_EVENTS = 512  # a reader that is further behind than this reads from the database


class Batch:
    """Consecutive events of one run without a gap; all its subscribers share the same batch."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.first: int = events[0]["seq"]
        self.last: int = events[-1]["seq"]

    @cached_property
    def frames(self) -> bytes:
        """The events as `text/event-stream`, serialized once for all subscribers."""
        return frames_of(self.events)

    @cached_property
    def is_final(self) -> bool:
        """Whether the last event ends the run."""
        return self.events[-1]["type"] in FINAL

    def after(self, seq: int) -> Batch:
        """Return the events after `seq`; there has to be at least one."""
        return Batch(self.events[seq - self.first + 1 :])


def frames_of(events: Sequence[Event]) -> bytes:
    """Return events in the `text/event-stream` format."""
    return b"".join(
        b"id: %d\ndata: %b\n\n" % (event["seq"], escape_line_separators(orjson.dumps(event)))
        for event in events
    )


class Reader:
    """A reader that waits on the event loop until it is woken."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None
        self.is_closed = False

    def wake(self) -> None:
        """End the wait."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def close(self) -> None:
        """Signal the reader to stop; queued events can still be taken."""
        self.is_closed = True
        self.wake()

    async def wait_until_woken(self, timeout_s: float | None = None) -> None:
        """Return after `wake`, or after the timeout."""
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            if timeout_s is None:
                await self._waiting
            else:
                await asyncio.wait({self._waiting}, timeout=timeout_s)
        finally:
            self._waiting = None


class Subscriber(Reader):
    """A reader of a run's events. Use it on the event loop only.

    A new subscriber is behind: its reader reads the log from the database and reports with
    `mark_read` how far it has read. From then on the hub fills the queue, until the queue overflows
    or a gap appears; then the subscriber is behind again.

    Args:
        can_join_at: whether a reader that has all events up to a seq gets every later one.
    """

    def __init__(self, can_join_at: Callable[[int], bool]) -> None:
        super().__init__()
        self._can_join_at = can_join_at
        self._seq: int | None = None  # of the last event that was queued or taken
        self._queue: deque[Batch] = deque()
        self._queued = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_behind(self) -> bool:
        """Whether the reader has to read the database next; queued events come first."""
        return self._seq is None and not self._queue

    @property
    def is_ready(self) -> bool:
        """Whether `wait` returns at once: events are queued, or it is behind or closed."""
        return bool(self._queue) or self._seq is None or self.is_closed

    def mark_read(self, seq: int, *, log_seq: int) -> None:
        """Record that the reader has every event up to `seq`, read from a log that ended at
        `log_seq`. The caller may name a `seq` that the log has not reached yet.
        """
        if self._can_join_at(log_seq):
            self._seq = max(seq, log_seq)

    def offer(self, batch: Batch) -> None:
        """Queue the new events of the batch, or fall behind."""
        if self._seq is None:
            return
        if batch.last <= self._seq:
            if batch.is_final:  # the log ends before the seq that the caller named
                self.fall_behind()
            return
        if batch.first <= self._seq:
            batch = batch.after(self._seq)
        size = len(batch.events)
        if batch.first != self._seq + 1 or self._queued + size > QUEUE_EVENTS:
            self.fall_behind()
            return
        self._queue.append(batch)
        self._queued += size
        self._seq = batch.last
        self.wake()

    def fall_behind(self) -> None:
        """Have the reader read the database after the queued events, which stay valid."""
        self._seq = None
        self.wake()

    def take(self) -> list[Batch]:
        """Remove and return the queued batches, in order."""
        taken = list(self._queue)
        self._queue.clear()
        self._queued = 0
        return taken

    def wake_every(self, seconds: float) -> None:
        """Make `wait` return at this interval too, with one timer for the subscriber's life."""
        loop = asyncio.get_running_loop()

        def tick() -> None:
            self.wake()
            self._timer = loop.call_later(seconds, tick)

        self._timer = loop.call_later(seconds, tick)

    async def wait(self, timeout_s: float | None = None) -> None:
        """Return as soon as `is_ready` is true, after `wake`, or after the timeout."""
        if not self.is_ready:
            await self.wait_until_woken(timeout_s)

    def dispose(self) -> None:
        """Cancel the timer and drop the queue, once the reader has left."""
        if self._timer is not None:
            self._timer.cancel()
        self._queue.clear()
