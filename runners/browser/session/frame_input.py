"""Let input reach the frames of other origins in a page, only while a person acts on it.

page/frame_input.js withholds all input from them.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from runners.browser.page_scripts import PERSON_TOKEN

if TYPE_CHECKING:
    from playwright.async_api import Page

OPEN_SECONDS = 3.0  # as in page/frame_input.js
RENEW_SECONDS = 1.0
ANSWER_SECONDS = 0.3  # a frame that hangs gets no input
_DISPATCH = "(name) => void window.dispatchEvent(new Event(name))"


class FrameInput:
    """Whether the frames of other origins in a page get input."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._opened_at = -OPEN_SECONDS

    async def open(self) -> None:
        """Let them have input for some seconds; call it before each input of a person."""
        if time.monotonic() >= self._opened_at + RENEW_SECONDS:
            self._opened_at = time.monotonic()
            await self._tell("opened")

    async def close(self) -> None:
        """Withhold input from them again; call it before input of an agent."""
        if time.monotonic() < self._opened_at + OPEN_SECONDS:
            await self._tell("closed")
            self._opened_at = -OPEN_SECONDS

    async def _tell(self, event: str) -> None:
        telling = [
            asyncio.ensure_future(frame.evaluate(_DISPATCH, f"{PERSON_TOKEN}{event}"))
            for frame in self._page.frames[1:]
        ]
        for sent in telling:
            sent.add_done_callback(lambda done: done.cancelled() or done.exception())
        if telling:
            await asyncio.wait(telling, timeout=ANSWER_SECONDS)
