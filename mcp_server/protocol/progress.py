"""Progress notifications while a call waits: they only grow, and they come even when nothing moves.

Hosts give a call up after a minute or so without a sign of life, and the protocol demands that each
value exceeds the one before (MCP, "Progress flow"): while a step is under way the value creeps
towards the next whole number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mcp.server.session import ServerSession

KEEP_ALIVE_S = 10.0
JOINED_MAX = 500  # characters of what is told at once: the last ones


class ProgressReporter:
    """Tells one call's client how far the work is; says nothing to a client that did not ask."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._told = -1.0
        self._signs = 0
        self._done, self._total, self._message = 0, 0, ""
        self._life: asyncio.Task[None] | None = None

    async def __call__(self, done: int, total: int, message: str) -> None:
        """Report the steps done, and from now on a sign of life now and then."""
        if done > self._done:
            self._signs = 0
        self._done, self._total, self._message = done, total, message
        await self._send(float(done))
        if self._life is None:
            self._life = asyncio.create_task(self._show_life())

    def close(self) -> None:
        """End the signs of life; the call is over."""
        if self._life is not None:
            self._life.cancel()

    async def _show_life(self) -> None:
        while True:
            await asyncio.sleep(KEEP_ALIVE_S)
            self._signs += 1
            await self._send(self._done + self._signs / (self._signs + 1))

    async def _send(self, value: float) -> None:
        """Send a value that exceeds all before it; any other was told already."""
        if value <= self._told:
            return
        self._told = value
        known = self._total > 0
        steps = f"{self._done} of {self._total} steps, " if known else ""
        await self._session.report_progress(
            value, float(self._total) if known else None, steps + self._message
        )


class TextProgress:
    """Hands pieces of text to the progress of a call: those that come while one is sent are told
    together, by their end.
    """

    def __init__(self, progress: Callable[[int, int, str], Awaitable[None]]) -> None:
        self._progress = progress
        self._count = 0
        self._text = ""
        self._sending: asyncio.Task[None] | None = None

    def say(self, piece: str) -> None:
        """Take a piece; it is told soon."""
        self._count += 1
        self._text = (self._text + piece)[-JOINED_MAX:]
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def close(self) -> None:
        """Wait until what was taken is told."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    async def _send(self) -> None:
        while self._text:
            text, self._text = self._text, ""
            await self._progress(self._count, 0, text)
