"""Pictures of what a tab shows, with the values of secret fields covered."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from runners.browser.failures import ContextLost
from runners.browser.page_scripts import cover_script
from runners.browser.tab import Picture, Tab
from runners.errors import ToolFailed

if TYPE_CHECKING:
    from runners.base import ToolContext

COVER_SECONDS = 2.0
FAILURE_SECONDS = 5.0
_FIELDS = '[...document.querySelectorAll("input, textarea")]'
FIELD_VALUES = f"() => {_FIELDS}.map((field) => field.value)"
# Empties some fields and returns what the page then says.
CLEAR = f"""(some) => {{
  const fields = {_FIELDS};
  for (const at of some) fields[at].value = "";
  return document.title + "\\n" + (document.body?.innerText ?? "");
}}"""


async def picture_of(tab: Tab, *, seconds: float, picture: Picture = "jpeg") -> bytes:
    """Return the visible part of the tab's page as JPEG (quality 60) or PNG.

    Raises:
        TimeoutError: The page did not paint, or did not let its secrets be covered, in time.
        ContextLost: The page went on to another document meanwhile.
        PageCrashed: The page is gone.
    """
    end = time.monotonic() + seconds
    left = lambda: min(COVER_SECONDS, end - time.monotonic())  # noqa: E731
    has_covered = bool(await tab.call(cover_script(), True, left))
    try:
        return await tab.screenshot(seconds=max(0.1, end - time.monotonic()), picture=picture)
    finally:
        if has_covered:
            with contextlib.suppress(ContextLost, TimeoutError, ToolFailed):
                await tab.call(cover_script(), False, left)


async def keep_picture(ctx: ToolContext, *, url: str | None = None) -> str | None:
    """Save a picture as an artifact and return its id: of the tab that was used last, or of the one
    that was asked for `url`.

    Fields that hold a secret of the run are emptied first. None where there is no such page any
    more, it does not paint, or it shows a secret in its text, which nothing covers.
    """
    tabs = [] if ctx.browser is None else ctx.browser.open_tabs()
    tab = next((tab for tab in tabs if url is None or tab.requested_url == url), None)
    if tab is None:
        return None
    end = time.monotonic() + FAILURE_SECONDS
    left: Callable[[], float] = lambda: end - time.monotonic()  # noqa: E731
    if tab.is_leaving:
        await tab.stop_loading()  # a page on its way to one that does not come answers nothing
    try:
        values = await tab.call(FIELD_VALUES, None, left)
        secret = [at for at, value in enumerate(values) if ctx.mask(value) != value]
        text = str(await tab.call(CLEAR, secret, left))
        if ctx.mask(text) != text:
            return None
        data = await picture_of(tab, seconds=left())
    except (ContextLost, TimeoutError, ToolFailed):
        return None
    return await ctx.save_artifact(
        data, name="screenshot.jpg", mime_type="image/jpeg", kind="screenshot"
    )
