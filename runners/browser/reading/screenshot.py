"""Screenshots of a tab, with the values of secret fields covered."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from runners.browser.errors import ContextLost
from runners.browser.page_scripts import cover_script, visible_text_script
from runners.browser.session.tab import Clip, ImageFormat, Tab
from runners.errors import ToolFailed

if TYPE_CHECKING:
    from runners.tools.base import ToolContext

COVER_SECONDS = 2.0
FAILURE_SECONDS = 5.0


async def take_screenshot(
    tab: Tab,
    *,
    seconds: float,
    image_format: ImageFormat = "jpeg",
    clip: Clip | None = None,
    numbers: bool = False,
) -> bytes:
    """Return an image of the viewport, or of a part of the page.

    The image is JPEG (quality 60) or PNG. With `numbers`, the click ids of the elements in view are
    drawn on it.

    Raises:
        TimeoutError: The page did not paint, or its secrets could not be covered, in time.
        ContextLost: The page navigated to another document meanwhile.
        PageCrashed: The page is gone.
    """
    deadline = time.monotonic() + seconds
    seconds_left = lambda: min(COVER_SECONDS, deadline - time.monotonic())  # noqa: E731
    has_covered = bool(await tab.call(cover_script(), True, seconds_left))
    try:
        if numbers:
            await tab.run_command("drawNumbers", seconds=min(seconds, COVER_SECONDS))
        seconds = max(0.1, deadline - time.monotonic())
        return await tab.screenshot(seconds=seconds, image_format=image_format, clip=clip)
    finally:
        if numbers:
            with contextlib.suppress(ContextLost, ToolFailed):
                await tab.run_command("eraseNumbers", seconds=COVER_SECONDS)
        if has_covered:
            with contextlib.suppress(ContextLost, TimeoutError, ToolFailed):
                await tab.call(cover_script(), False, seconds_left)


async def save_screenshot(ctx: ToolContext, *, url: str | None = None) -> str | None:
    """Store a screenshot of a page of the run as an artifact and return its id.

    The page is that of the run's most recently used tab, or of the tab that was opened with `url`.
    Fields that contain a secret of the run are emptied first, also in open shadow roots and frames.
    Returns None if there is no such page, it does not paint, or it still shows a secret.
    """
    tabs = [] if ctx.browser is None else ctx.browser.tabs_of_run()
    usable = (tab for tab in tabs if tab.is_usable)
    tab = next((tab for tab in usable if url is None or tab.requested_url == url), None)
    if tab is None:
        return None
    deadline = time.monotonic() + FAILURE_SECONDS
    seconds_left: Callable[[], float] = lambda: deadline - time.monotonic()  # noqa: E731
    if tab.is_leaving:
        await tab.stop_loading()  # a page whose navigation does not finish may not answer
    try:
        if not await _hide_secrets(tab, ctx.mask, seconds_left):
            return None
        data = await take_screenshot(tab, seconds=seconds_left())
    except (ContextLost, TimeoutError, ToolFailed):
        return None
    return await ctx.save_artifact(
        data, name="screenshot.jpg", mime_type="image/jpeg", kind="screenshot"
    )


async def shows_secret(
    tab: Tab, mask: Callable[[str], str], seconds_left: Callable[[], float]
) -> bool:
    """Return whether the page shows a text that is masked in records."""
    shown = await tab.call(visible_text_script(), [], seconds_left)
    return any(mask(text) != text for text in (*shown["fields"], *shown["texts"]))


async def _hide_secrets(
    tab: Tab, mask: Callable[[str], str], seconds_left: Callable[[], float]
) -> bool:
    """Empty the fields that show a secret; return whether the page then shows none."""
    shown = await tab.call(visible_text_script(), [], seconds_left)
    secret = [index for index, text in enumerate(shown["fields"]) if mask(text) != text]
    if secret:
        await tab.call(visible_text_script(), secret, seconds_left)
    return not await shows_secret(tab, mask, seconds_left)
