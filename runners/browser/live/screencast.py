"""What a page looks like as it changes: pictures of it, no faster than PACE_SECONDS, the newest
wins. They are handed on and kept nowhere.

The browser drops what changes while it waits for the word that a picture was taken, and does not
make up for it: once the page is at rest the screencast is begun anew, which brings a picture at
once. (A screenshot would have the browser paint, and tell of changes that are none, for ever.)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runners.browser.errors import browser_errors

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

PACE_SECONDS = 0.1
REST_SECONDS = 0.4
AGAIN_SECONDS = 0.2  # where a page that is on its way to another cannot be pictured
STOP_SECONDS = 2.0  # a page that answers nothing any more is left as it is
WIDTH, HEIGHT = 1280, 720
QUALITIES = (60, 35, 15)  # the next one where a picture is too large
MAX_CHARACTERS = 700_000  # of a picture in base64; what is larger at the worst quality is left out


@dataclass(frozen=True, slots=True)
class Picture:
    """What the page shows now.

    Attributes:
        data: a JPEG in base64.
        width: of the page's viewport, in CSS pixels, as are places in it.
    """

    data: str
    width: int
    height: int


class Screencast:
    """Pictures of one page, from `start` to `stop`; used on the loop thread.

    Args:
        line: to the page, of its own.
        show: is given each picture that differs from the one before.
    """

    def __init__(self, line: CDPSession, show: Callable[[Picture], None]) -> None:
        self._line, self._show = line, show
        self._last: Picture | None = None
        self._size = WIDTH, HEIGHT
        self._quality = 0
        self._resting: asyncio.TimerHandle | None = None
        self._chores: set[asyncio.Task[None]] = set()
        self._next_at = 0.0

    def start(self) -> None:
        """Begin; the first picture comes as soon as there is something to see."""
        self._line.on("Page.screencastFrame", self._take)
        self._do(self._begin())

    def again(self) -> None:
        """Show the newest picture once more: somebody came who has not seen it."""
        if self._last is not None:
            self._show(self._last)

    async def stop(self) -> None:
        """End it; the line is its owner's."""
        self._line.remove_listener("Page.screencastFrame", self._take)
        if self._resting is not None:
            self._resting.cancel()
        for chore in self._chores:
            chore.cancel()
        with contextlib.suppress(*browser_errors()):
            async with asyncio.timeout(STOP_SECONDS):
                await self._line.send("Page.stopScreencast")

    async def _begin(self) -> None:
        """Begin, or begin anew: the browser tells at once how the page looks."""
        how = {
            "format": "jpeg",
            "quality": QUALITIES[self._quality],
            "maxWidth": WIDTH,
            "maxHeight": HEIGHT,
        }
        while True:  # until `stop`: a page that is gone is seen by its owner
            with contextlib.suppress(*browser_errors()):
                await self._line.send("Page.enable")
                await self._line.send("Page.stopScreencast")
                await self._line.send("Page.startScreencast", how)
                return
            await asyncio.sleep(AGAIN_SECONDS)

    def _take(self, told: Mapping[str, Any]) -> None:
        size = told["metadata"]
        self._size = int(size["deviceWidth"]) or WIDTH, int(size["deviceHeight"]) or HEIGHT
        self._note(str(told["data"]))
        self._do(self._go_on(int(told["sessionId"])))

    async def _go_on(self, number: int) -> None:
        """Ask for the next picture, once it is time for one; several may be on their way."""
        now = asyncio.get_running_loop().time()
        self._next_at = max(now, self._next_at + PACE_SECONDS)
        await asyncio.sleep(self._next_at - now)
        await self._line.send("Page.screencastFrameAck", {"sessionId": number})

    def _note(self, data: str) -> None:
        """Hand a picture on where it tells something new, and begin anew when the page rests."""
        if self._last is not None and data == self._last.data:
            return
        if len(data) > MAX_CHARACTERS:
            self._be_coarser()
            return
        self._last = Picture(data, *self._size)
        self._show(self._last)
        if self._resting is not None:
            self._resting.cancel()
        loop = asyncio.get_running_loop()
        self._resting = loop.call_later(REST_SECONDS, lambda: self._do(self._begin()))

    def _be_coarser(self) -> None:
        if self._quality + 1 < len(QUALITIES):
            self._quality += 1
            self._do(self._begin())

    def _do(self, work: Any) -> None:
        async def chore() -> None:
            with contextlib.suppress(*browser_errors()):  # the page is gone: its owner sees that
                await work

        task = asyncio.ensure_future(chore())
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
