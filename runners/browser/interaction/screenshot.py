"""Pictures of what a tab shows, with the values of secret fields covered."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from runners.browser.errors import ContextLost
from runners.browser.page_scripts import cover_script, visible_text_script
from runners.browser.session.tab import Picture, Tab
from runners.errors import ToolFailed

if TYPE_CHECKING:
    from runners.tools.base import ToolContext

COVER_SECONDS = 2.0
FAILURE_SECONDS = 5.0


async def take_screenshot(
    tab: Tab, *, seconds: float, picture: Picture = "jpeg", height: float | None = None
) -> bytes:
    """Return the visible part of the tab's page as JPEG (quality 60) or PNG, or the page down to a
    `height` in CSS pixels.

    Raises:
        TimeoutError: The page did not paint, or did not let its secrets be covered, in time.
        ContextLost: The page went on to another document meanwhile.
        PageCrashed: The page is gone.
    """
    end = time.monotonic() + seconds
    left = lambda: min(COVER_SECONDS, end - time.monotonic())  # noqa: E731
    has_covered = bool(await tab.call(cover_script(), True, left))
    try:
        seconds = max(0.1, end - time.monotonic())
        return await tab.screenshot(seconds=seconds, picture=picture, height=height)
    finally:
        if has_covered:
            with contextlib.suppress(ContextLost, TimeoutError, ToolFailed):
                await tab.call(cover_script(), False, left)


async def save_screenshot(ctx: ToolContext, *, url: str | None = None) -> str | None:
    """Save a picture as an artifact and return its id: of the run's tab that was used last, or of
    the one that was asked for `url`.

    Fields that hold a secret of the run are emptied first, in open shadow roots and in frames too.
    None where there is no such page any more, it does not paint, or it still shows a secret, which
    nothing covers.
    """
    tabs = [] if ctx.browser is None else ctx.browser.tabs_of_run()
    usable = (tab for tab in tabs if tab.is_usable)
    tab = next((tab for tab in usable if url is None or tab.requested_url == url), None)
    if tab is None:
        return None
    end = time.monotonic() + FAILURE_SECONDS
    left: Callable[[], float] = lambda: end - time.monotonic()  # noqa: E731
    if tab.is_leaving:
        await tab.stop_loading()  # a page on its way to one that does not come answers nothing
    try:
        if not await _hide_secrets(tab, ctx.mask, left):
            return None
        data = await take_screenshot(tab, seconds=left())
    except (ContextLost, TimeoutError, ToolFailed):
        return None
    return await ctx.save_artifact(
        data, name="screenshot.jpg", mime_type="image/jpeg", kind="screenshot"
    )


async def _hide_secrets(tab: Tab, mask: Callable[[str], str], left: Callable[[], float]) -> bool:
    """Empty the fields that show a secret; return whether nothing that can be looked at does."""

    def is_secret(text: str) -> bool:
        return mask(text) != text

    shown = await tab.call(visible_text_script(), [], left)
    secret = [at for at, text in enumerate(shown["fields"]) if is_secret(text)]
    if secret:
        shown = await tab.call(visible_text_script(), secret, left)
    return not any(map(is_secret, (*shown["fields"], *shown["texts"])))
