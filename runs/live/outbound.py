"""What goes out to those who look: notices in order, of the pictures the newest alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

NOTICES = 64  # older ones are left out
Message = Mapping[str, Any]


class Outbound:
    """Sends with a task of its own, one message after the other: while the way is slow, pictures
    are left out.

    Args:
        publish: sends one; it raises nothing.
    """

    def __init__(self, publish: Callable[[Message], Awaitable[None]]) -> None:
        self._publish = publish
        self._notices: deque[Message] = deque(maxlen=NOTICES)
        self._picture: Message | None = None
        self._news = asyncio.Event()
        self._sending = asyncio.create_task(self._send())

    def say(self, notice: Message) -> None:
        """Send a notice."""
        self._notices.append(notice)
        self._news.set()

    def show(self, picture: Message) -> None:
        """Send a picture, unless a newer one comes first."""
        self._picture = picture
        self._news.set()

    async def close(self) -> None:
        """Send the notices that wait, and end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                while self._notices:
                    await asyncio.sleep(0.02)
        self._sending.cancel()
        await asyncio.gather(self._sending, return_exceptions=True)

    async def _send(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._notices:
                await self._publish(self._notices.popleft())
            picture, self._picture = self._picture, None
            if picture is not None:
                await self._publish(picture)
