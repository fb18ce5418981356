"""How what belongs to a session ends with it."""

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
    """Something that a tool made for later calls in the same session."""

    async def close(self) -> None:
        """End it; it raises nothing, and is called once."""
        ...


async def ended(closing: Awaitable[None]) -> None:
    """Wait for a close; what does not close in time goes with its context or its browser."""
    try:
        await asyncio.wait_for(closing, CLOSE_SECONDS)
    except browser_errors() as error:
        logger.debug("closing ended with %s", type(error).__name__)


async def close_page(page: Page, target_id: str) -> None:
    """Close a page, whatever it is doing.

    A busy Chromium now and then loses a close that meets a navigation, and Playwright asks it only
    once: a page that is still there is closed again, past Playwright.
    """
    closing = asyncio.ensure_future(page.close(run_before_unload=False))
    closing.add_done_callback(lambda over: over.cancelled() or over.exception())
    done, _ = await asyncio.wait((closing,), timeout=CLOSE_AGAIN_SECONDS)
    browser = page.context.browser
    if not done and browser is not None:
        line = await browser.new_browser_cdp_session()
        with contextlib.suppress(*browser_errors()):  # where it closed meanwhile
            await line.send("Target.closeTarget", {"targetId": target_id})
        await line.detach()
    await closing
