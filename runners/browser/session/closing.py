"""Close pages and other resources of a session within a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from runners.browser.errors import browser_errors

if TYPE_CHECKING:
    from playwright.async_api import Page

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 5.0
CLOSE_AGAIN_SECONDS = 1.5


class SessionResource(Protocol):
    """Something that a tool created for later calls in the same session."""

    async def close(self) -> None:
        """Close it; raises nothing, and is called once."""
        ...


async def wait_closed(closing: Awaitable[None]) -> None:
    """Wait for a close; what does not close in time ends with its context or its browser."""
    try:
        await asyncio.wait_for(closing, CLOSE_SECONDS)
    except browser_errors() as error:
        logger.debug("closing failed: %s", type(error).__name__)


async def close_page(page: Page, target_id: str) -> None:
    """Close a page, even while it navigates or its script hangs.

    A busy Chromium sometimes loses a close request that coincides with a navigation, and Playwright
    sends it only once. A page that is still open is therefore closed again through CDP.
    """
    closing = asyncio.ensure_future(page.close(run_before_unload=False))
    closing.add_done_callback(lambda done: done.cancelled() or done.exception())
    done, _ = await asyncio.wait((closing,), timeout=CLOSE_AGAIN_SECONDS)
    browser = page.context.browser
    if not done and browser is not None:
        cdp = await browser.new_browser_cdp_session()
        with contextlib.suppress(*browser_errors()):  # it may have closed meanwhile
            await cdp.send("Target.closeTarget", {"targetId": target_id})
        await cdp.detach()
    await closing
