"""A screencast of a page: images of it as it changes, at most one per PACE_SECONDS. None is stored.

Chromium drops changes while a frame is not acknowledged, and does not send them later. So the
screencast is restarted once the page stops changing, which sends a frame at once. (A screenshot is
unsuitable: it makes the browser paint, which produces another frame, endlessly.)
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
RETRY_SECONDS = 0.2  # the screencast cannot start while the page navigates
STOP_SECONDS = 2.0  # after which a page that does not respond is ignored
WIDTH, HEIGHT = 1280, 720
QUALITIES = (60, 35, 15)  # the next one is used if a frame is too large
MAX_CHARACTERS = 700_000  # of a frame in base64; a larger one at the lowest quality is dropped


@dataclass(frozen=True, slots=True)
class ScreencastFrame:
    """One image of the page.

    Attributes:
        data: a JPEG in base64.
        width, height: the size of the page's viewport in CSS pixels.
    """

    data: str
    width: int
    height: int


class Screencast:
    """Frames of one page, from `start` to `stop`; to be used on the loop thread.

    Args:
        cdp: a CDP session of the page, not the tab's own.
        on_frame: receives each frame that differs from the one before.
    """

    def __init__(self, cdp: CDPSession, on_frame: Callable[[ScreencastFrame], None]) -> None:
        self._cdp, self._on_frame = cdp, on_frame
        self._last: ScreencastFrame | None = None
        self._size = WIDTH, HEIGHT
        self._quality = 0
        self._restart_timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_at = 0.0

    def start(self) -> None:
        """Start the screencast; the first frame comes as soon as the page shows something."""
        self._cdp.on("Page.screencastFrame", self._receive)
        self._run_in_background(self._restart())

    def resend_latest(self) -> None:
        """Send the latest frame again, for a new viewer."""
        if self._last is not None:
            self._on_frame(self._last)

    async def stop(self) -> None:
        """Stop the screencast; the caller closes the CDP session."""
        self._cdp.remove_listener("Page.screencastFrame", self._receive)
        if self._restart_timer is not None:
            self._restart_timer.cancel()
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(*browser_errors()):
            async with asyncio.timeout(STOP_SECONDS):
                await self._cdp.send("Page.stopScreencast")

    async def _restart(self) -> None:
        """Start or restart the screencast: the browser sends a frame at once."""
        options = {
            "format": "jpeg",
            "quality": QUALITIES[self._quality],
            "maxWidth": WIDTH,
            "maxHeight": HEIGHT,
        }
        while True:  # until `stop`; the caller detects a page that is gone
            with contextlib.suppress(*browser_errors()):
                await self._cdp.send("Page.enable")
                await self._cdp.send("Page.stopScreencast")
                await self._cdp.send("Page.startScreencast", options)
                return
            await asyncio.sleep(RETRY_SECONDS)

    def _receive(self, params: Mapping[str, Any]) -> None:
        size = params["metadata"]
        self._size = int(size["deviceWidth"]) or WIDTH, int(size["deviceHeight"]) or HEIGHT
        self._handle_frame(str(params["data"]))
        self._run_in_background(self._acknowledge(int(params["sessionId"])))

    async def _acknowledge(self, number: int) -> None:
        """Request the next frame when it is due; several acknowledgements may be pending."""
        now = asyncio.get_running_loop().time()
        self._next_at = max(now, self._next_at + PACE_SECONDS)
        await asyncio.sleep(self._next_at - now)
        await self._cdp.send("Page.screencastFrameAck", {"sessionId": number})

    def _handle_frame(self, data: str) -> None:
        """Pass on a frame that differs, and schedule a restart for when the page stops changing."""
        if self._last is not None and data == self._last.data:
            return
        if len(data) > MAX_CHARACTERS:
            self._lower_quality()
            return
        self._last = ScreencastFrame(data, *self._size)
        self._on_frame(self._last)
        if self._restart_timer is not None:
            self._restart_timer.cancel()
        loop = asyncio.get_running_loop()
        self._restart_timer = loop.call_later(
            REST_SECONDS, lambda: self._run_in_background(self._restart())
        )

    def _lower_quality(self) -> None:
        if self._quality + 1 < len(QUALITIES):
            self._quality += 1
            self._run_in_background(self._restart())

    def _run_in_background(self, work: Any) -> None:
        async def ignoring_errors() -> None:
            with contextlib.suppress(*browser_errors()):  # the caller detects a page that is gone
                await work

        task = asyncio.ensure_future(ignoring_errors())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
