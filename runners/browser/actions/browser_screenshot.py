"""The action `browser_screenshot`: store a screenshot of the task's page."""

from __future__ import annotations

import struct
import time

from runners.actions.catalogue import SCREENSHOT
from runners.actions.parameters import BrowserScreenshot
from runners.actions.registration import action
from runners.actions.results import ScreenshotTaken
from runners.browser.errors import ContextLost, browser_errors, browser_lost
from runners.browser.reading.screenshot import shows_secret, take_screenshot
from runners.browser.session.tab import Clip, Tab
from runners.browser.tabs.artifacts import store_artifact
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.browser.tabs.task_tab import check_page_address, task_tab
from runners.errors import NavigationTimeout, ToolFailed
from runners.tools.base import ToolContext

MAX_HEIGHT = 16_000  # pixels; JPEG allows 65 535, but a worker's memory does not
_SOF_MARKERS = frozenset(
    {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
)  # the JPEG segments that contain width and height


@action(SCREENSHOT)
async def browser_screenshot(args: BrowserScreenshot, ctx: ToolContext) -> ScreenshotTaken:
    """Store a screenshot of the visible part of the task's page, or of the whole page, as a JPEG
    artifact. The values of secret fields are covered. With `numbers`, the clickIds of the last
    observation are drawn on it; browser_click takes x and y in its pixels. Such a picture is for a
    model, so it fails while the page shows a secret of the run.
    """
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        deadline = time.monotonic() + ctx.seconds_left() - RESERVE_SECONDS
        try:
            if args.numbers and await shows_secret(
                task.tab, ctx.mask, lambda: _seconds_left(deadline)
            ):
                raise ToolFailed(
                    "The page shows a secret of this run, so no picture of it is taken.",
                    details={"reason": "secret_on_page"},
                )
            clip, warnings = await _clip(task.tab, args, deadline)
            data = await take_screenshot(
                task.tab, seconds=_seconds_left(deadline), clip=clip, numbers=args.numbers
            )
        except (ContextLost, TimeoutError):
            raise NavigationTimeout(
                "No screenshot could be taken: the page kept changing.",
                details={"url": task.tab.page.url},
            ) from None
        url = task.tab.page.url
        check_page_address(url, ctx)
        if not args.full_page:
            task.picture_scale = clip.scale if clip else 1.0
        width, height_px = jpeg_size(data)
        artifact_id = await store_artifact(
            ctx, data, name="screenshot.jpg", mime_type="image/jpeg", kind="screenshot"
        )
        return ScreenshotTaken(
            artifactId=artifact_id, url=url, width=width, height=height_px, warnings=warnings
        )


async def _clip(
    tab: Tab, args: BrowserScreenshot, deadline: float
) -> tuple[Clip | None, list[str]]:
    """Return the part of the page to show, None for the viewport as it is, and a warning if the
    page is higher.
    """
    if not args.full_page and args.long_edge is None:
        return None, []
    try:
        requesting = tab.cdp.send("Page.getLayoutMetrics")
        metrics = await tab.perform(requesting, seconds=_seconds_left(deadline))
    except TimeoutError:
        raise
    except browser_errors():
        raise browser_lost() from None
    view, warnings = metrics["cssVisualViewport"], []
    x, y, width, height = (view[name] for name in ("pageX", "pageY", "clientWidth", "clientHeight"))
    if args.full_page:
        whole = max(1.0, float(metrics["cssContentSize"]["height"]))
        x, y, height = 0, 0, min(whole, MAX_HEIGHT)
        width = (tab.page.viewport_size or {"width": 1280})["width"]
        if whole > MAX_HEIGHT:
            warnings = [f"The screenshot ends at {MAX_HEIGHT} of {round(whole)} pixels."]
    scale = min(1.0, args.long_edge / max(width, height)) if args.long_edge else 1.0
    return Clip(x, y, width, height, scale, is_beyond_viewport=args.full_page), warnings


def _seconds_left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())


def jpeg_size(jpeg: bytes) -> tuple[int, int]:
    """Return width and height of a JPEG in pixels."""
    offset = 2
    while offset < len(jpeg):
        _, marker, length = struct.unpack(">BBH", jpeg[offset : offset + 4])
        if marker in _SOF_MARKERS:
            height, width = struct.unpack(">HH", jpeg[offset + 5 : offset + 9])
            return width, height
        offset += 2 + length
    raise ValueError("not a JPEG")
