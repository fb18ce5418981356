"""What goes out to those who look."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from decisions.infra.cancellation import ended
from runs.live.viewer_queue import Message, ViewerQueue

CLOSE_S = 2.0


class ViewerSender:
    """Sends with a task of its own, one message after the other: while the way is slow, pictures
    are left out.

    Args:
        publish: sends one; it raises nothing.
    """

    def __init__(self, publish: Callable[[Message], Awaitable[None]]) -> None:
        self._publish = publish
        self._backlog = ViewerQueue()
        self.say, self.show = self._backlog.say, self._backlog.show
        self._sending = asyncio.create_task(self._send())

    async def close(self) -> None:
        """Send the notices that wait, for CLOSE_S at the most, and end."""
        self._backlog.end()
        await asyncio.wait([self._sending], timeout=CLOSE_S)
        await ended([self._sending])

    async def _send(self) -> None:
        async for message in self._backlog:
            await self._publish(message)
