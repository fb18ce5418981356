"""Messages on their way to a live page's viewers: a bounded queue, and the task that sends it.

Notices are sent in order. Of the pictures only the newest is kept, so a slow connection skips
pictures instead of falling behind.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from decisions.foundation.infra.cancellation import cancel_and_wait

CLOSE_S = 2.0
MAX_NOTICES = 64  # when more wait, the oldest are dropped
Message = Mapping[str, Any]


class ViewerQueue:
    """The waiting messages of one reader, which iterates over them. Use it on one event loop."""

    def __init__(self) -> None:
        self._notices: deque[Message] = deque(maxlen=MAX_NOTICES)
        self._picture: Message | None = None
        self._has_new = asyncio.Event()
        self._is_ended = False

    def add_notice(self, notice: Message) -> None:
        """Append a notice."""
        self._notices.append(notice)
        self._has_new.set()

    def set_picture(self, picture: Message) -> None:
        """Set the picture, replacing one that was not read yet."""
        self._picture = picture
        self._has_new.set()

    def end(self) -> None:
        """End the iteration after the waiting notices."""
        self._is_ended = True
        self._has_new.set()

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            if self._notices:
                yield self._notices.popleft()
            elif self._is_ended:
                return
            elif self._picture is not None:
                picture, self._picture = self._picture, None
                yield picture
            else:
                self._has_new.clear()
                await self._has_new.wait()


class ViewerSender:
    """Sends a queue's messages one after another, in a task of its own.

    Args:
        publish: sends one message; raises nothing.
    """

    def __init__(self, publish: Callable[[Message], Awaitable[None]]) -> None:
        self._publish = publish
        self._queue = ViewerQueue()
        self.add_notice, self.set_picture = self._queue.add_notice, self._queue.set_picture
        self._sending = asyncio.create_task(self._send())

    async def close(self) -> None:
        """Send the waiting notices, for CLOSE_S at most, and stop."""
        self._queue.end()
        await asyncio.wait([self._sending], timeout=CLOSE_S)
        await cancel_and_wait([self._sending])

    async def _send(self) -> None:
        async for message in self._queue:
            await self._publish(message)
