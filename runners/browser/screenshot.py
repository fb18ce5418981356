"""Pictures of what a tab shows, with the values of secret fields covered."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from runners.browser.failures import ContextLost
from runners.browser.page_scripts import cover_script
from runners.browser.tab import Tab
from runners.errors import ToolFailed

if TYPE_CHECKING:
    from runners.browser.session import BrowserSession

COVER_SECONDS = 2.0
FAILURE_SECONDS = 5.0


async def picture_of(tab: Tab, *, seconds: float) -> bytes:
    """Return the visible part of the tab's page as JPEG (quality 60).

    Raises:
        TimeoutError: The page did not paint, or did not let its secrets be covered, in time.
        ContextLost: The page went on to another document meanwhile.
        PageCrashed: The page is gone.
    """
    end = time.monotonic() + seconds
    left = lambda: min(COVER_SECONDS, end - time.monotonic())  # noqa: E731
    has_covered = bool(await tab.call(cover_script(), True, left))
    try:
        return await tab.screenshot(seconds=max(0.1, end - time.monotonic()))
    finally:
        if has_covered:
            with contextlib.suppress(ContextLost, TimeoutError, ToolFailed):
                await tab.call(cover_script(), False, left)


async def screenshot_of(session: BrowserSession, *, url: str | None = None) -> bytes | None:
    """Return a picture to keep with a failure: of the tab that was asked for `url`, or used last.

    None when there is no such tab any more, or it does not paint; it never raises for what the page
    does.
    """
    tabs = session.open_tabs()
    tab = next((tab for tab in tabs if url is None or tab.requested_url == url), None)
    if tab is None:
        return None
    try:
        return await picture_of(tab, seconds=FAILURE_SECONDS)
    except (ContextLost, TimeoutError, ToolFailed):
        return None
