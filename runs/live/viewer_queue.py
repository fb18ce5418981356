"""What waits to be told to somebody who looks: notices in order, of the pictures the newest alone.
Nothing is kept for whoever has no time for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

NOTICES = 64  # older ones are left out
Message = Mapping[str, Any]


class ViewerQueue:
    """Of one reader, who iterates over it until `end`; used on one event loop."""

    def __init__(self) -> None:
        self._notices: deque[Message] = deque(maxlen=NOTICES)
        self._picture: Message | None = None
        self._news = asyncio.Event()
        self._is_over = False

    def say(self, notice: Message) -> None:
        """Add a notice."""
        self._notices.append(notice)
        self._news.set()

    def show(self, picture: Message) -> None:
        """Have this be the picture, also instead of one that nobody took."""
        self._picture = picture
        self._news.set()

    def end(self) -> None:
        """Have the reader come to an end after the notices that wait."""
        self._is_over = True
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            if self._notices:
                yield self._notices.popleft()
            elif self._is_over:
                return
            elif self._picture is not None:
                picture, self._picture = self._picture, None
                yield picture
            else:
                self._news.clear()
                await self._news.wait()
