"""The action `browser_screenshot`: keep a picture of the task's page."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import SCREENSHOT
from runners.actions.parameters import BrowserScreenshot
from runners.actions.registration import action
from runners.actions.results import ScreenshotTaken
from runners.browser.action_support.artifacts import keep
from runners.browser.action_support.task_tab import check_page_address, task_tab
from runners.browser.errors import ContextLost, browser_errors, browser_lost
from runners.browser.interaction.run_tab import RESERVE_SECONDS
from runners.browser.interaction.screenshot import take_screenshot
from runners.browser.session.tab import Tab
from runners.errors import NavigationTimeout
from runners.tools.base import ToolContext

HIGHEST = 16_000  # pixels; a JPEG ends at 65 535, a worker's memory before that
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # markers that tell a JPEG's sides


@action(SCREENSHOT, kind="browser")
async def browser_screenshot(args: BrowserScreenshot, ctx: ToolContext) -> Mapping[str, Any]:
    """Keep a picture of what is in view of the task's page, or of the whole page, as a JPEG
    artifact. What secret fields hold is covered.
    """
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        end = time.monotonic() + ctx.seconds_left() - RESERVE_SECONDS
        try:
            height, warnings = await _height(task.tab, end) if args.full_page else (None, [])
            data = await take_screenshot(task.tab, seconds=_left(end), height=height)
        except (ContextLost, TimeoutError):
            raise NavigationTimeout(
                "The page did not hold still for a picture.", details={"url": task.tab.page.url}
            ) from None
        url = task.tab.page.url
        check_page_address(url, ctx)
        width, height_px = jpeg_size(data)
        artifact_id = await keep(
            ctx, data, name="screenshot.jpg", mime_type="image/jpeg", kind="screenshot"
        )
        return ScreenshotTaken(
            artifactId=artifact_id, url=url, width=width, height=height_px, warnings=warnings
        ).as_output()


async def _height(tab: Tab, end: float) -> tuple[float, list[str]]:
    """Return the height of the page as far as it is pictured, and a warning if that is less."""
    try:
        asking = tab.line.send("Page.getLayoutMetrics")
        told = await tab.perform(asking, seconds=_left(end))
    except TimeoutError:
        raise
    except browser_errors():
        raise browser_lost() from None
    height = max(1.0, float(told["cssContentSize"]["height"]))
    cut = [f"The picture ends at {HIGHEST} of {round(height)} pixels."] if height > HIGHEST else []
    return min(height, HIGHEST), cut


def _left(end: float) -> float:
    return max(0.1, end - time.monotonic())


def jpeg_size(jpeg: bytes) -> tuple[int, int]:
    """Return width and height of a JPEG in pixels."""
    at = 2
    while at < len(jpeg):
        _, marker, length = struct.unpack(">BBH", jpeg[at : at + 4])
        if marker in _FRAMES:
            height, width = struct.unpack(">HH", jpeg[at + 5 : at + 9])
            return width, height
        at += 2 + length
    raise ValueError("no JPEG")
