"""Somebody who waits for a moment in a run's life, and does not need its events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


class Watcher:
    """Used on the event loop alone.

    Args:
        types: the events at which the run is worth a look.

    Its reader looks at the run, says with `has` how far the log went then, and waits for `news`. A
    message that names other types is passed over; one that names none, as the rows do when they are
    asked, is worth a look if the log went on.
    """

    def __init__(self, types: frozenset[str]) -> None:
        self._types = types
        self._seq = 0
        self._news: int | None = None
        self._waiting: asyncio.Future[None] | None = None
        self.is_closed = False

    def has(self, seq: int) -> None:
        """Say that the reader saw the run as it was at `seq`."""
        self._seq = seq
        if self._news is not None and self._news <= seq:
            self._news = None

    def told(self, seq: int, types: Iterable[str] | None) -> None:
        """Hear that the log goes to `seq`."""
        if seq > self._seq and (types is None or not self._types.isdisjoint(types)):
            self._news = seq
            self._wake()

    def look(self) -> None:
        """Have the reader look whatever it saw."""
        self._news = self._seq + 1
        self._wake()

    def close(self) -> None:
        """Ask the reader to end."""
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def news(self, timeout_s: float) -> int | None:
        """Return the event that makes it worth looking at the run, or None when the time is up or
        the reader has to end.
        """
        if self._news is None and not self.is_closed:
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await asyncio.wait({self._waiting}, timeout=timeout_s)
            finally:
                self._waiting = None
        news, self._news = self._news, None
        return news
