"""Progress notifications of a call, with keep-alives while nothing changes.

Hosts abandon a call after about a minute without a notification, and the protocol requires each
progress value to exceed the one before (MCP, "Progress flow"). So while a step runs, the value
approaches the next whole number without reaching it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mcp.server.session import ServerSession

KEEP_ALIVE_S = 10.0
TEXT_MAX = 500  # characters of a message that joins several pieces of text: the last ones


class ProgressReporter:
    """Send one call's progress to its client; sends nothing where the client requested none."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._last_value = -1.0
        self._keep_alives = 0  # since the last finished step
        self._done, self._total, self._message = 0, 0, ""
        self._keep_alive: asyncio.Task[None] | None = None

    async def __call__(self, done: int, total: int, message: str) -> None:
        """Report the number of finished steps, and start sending keep-alives."""
        if done > self._done:
            self._keep_alives = 0
        self._done, self._total, self._message = done, total, message
        await self._send(float(done))
        if self._keep_alive is None:
            self._keep_alive = asyncio.create_task(self._send_keep_alives())

    def close(self) -> None:
        """Stop the keep-alives."""
        if self._keep_alive is not None:
            self._keep_alive.cancel()

    async def _send_keep_alives(self) -> None:
        while True:
            await asyncio.sleep(KEEP_ALIVE_S)
            self._keep_alives += 1
            await self._send(self._done + self._keep_alives / (self._keep_alives + 1))

    async def _send(self, value: float) -> None:
        """Send a value, unless one at least as large was sent before."""
        if value <= self._last_value:
            return
        self._last_value = value
        has_total = self._total > 0
        steps = f"{self._done} of {self._total} steps, " if has_total else ""
        await self._session.report_progress(
            value, float(self._total) if has_total else None, steps + self._message
        )


class TextProgress:
    """Report a stream of text as progress messages.

    Pieces that arrive while a message is being sent are joined into the next one, which keeps
    their last TEXT_MAX characters.
    """

    def __init__(self, progress: Callable[[int, int, str], Awaitable[None]]) -> None:
        self._progress = progress
        self._count = 0
        self._text = ""
        self._sending: asyncio.Task[None] | None = None

    def add(self, piece: str) -> None:
        """Add a piece of text; returns before it is sent."""
        self._count += 1
        self._text = (self._text + piece)[-TEXT_MAX:]
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def close(self) -> None:
        """Wait until all added text is sent."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    async def _send(self) -> None:
        while self._text:
            text, self._text = self._text, ""
            await self._progress(self._count, 0, text)
