"""The tool `read_page`: open a URL and read the page as text and as usable elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictBool, StrictStr

from runners.browser.errors import ContextLost
from runners.browser.parameters import ExtractOptions, WaitCondition
from runners.browser.reading.page_reader import opened_page
from runners.browser.reading.page_text import fit_content, reading_whole
from runners.browser.reading.screenshot import take_screenshot
from runners.browser.session.tab import Tab
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

SCREENSHOT_SECONDS = 10.0


class ReadPage(Closed):
    """What to open, and what to read from it."""

    url: StrictStr = Field(description="An http or https URL.")
    extract: ExtractOptions = Field(default_factory=ExtractOptions)
    wait_for: WaitCondition | None = Field(
        default=None, alias="waitFor", description="Read the page only after this is true."
    )
    whole: StrictBool = Field(
        default=False, description="Return the whole text, whatever maxContentLength is."
    )
    screenshot: StrictBool = Field(
        default=False, description="Store a screenshot of the visible part as an artifact."
    )


@tool("read_page", kind="browser", effect=Effect.READ, timeout_ms=60_000)
async def read_page(args: ReadPage, ctx: ToolContext) -> Mapping[str, Any]:
    """Open a web page and read it once it has loaded: title, type, summary, the usable elements
    (with position and state) and the text as sections under their headings.

    A page with an HTTP error status (404, 500) is read anyway: see `httpStatus`. Values of fields
    that look like passwords or tokens are masked as "***". Text over maxContentLength is cut, and
    `content.readOn` has the arguments of the read_page_content call that reads on.
    """
    extract = reading_whole(args.extract)
    async with opened_page(ctx, args.url, extract, args.wait_for) as (tab, page):
        if args.screenshot:
            page |= await _save_screenshot(tab, ctx, page["warnings"])
    if args.whole:
        return page
    return await fit_content(page, args.extract.max_content_length, ctx.save_artifact)


async def _save_screenshot(tab: Tab, ctx: ToolContext, warnings: list[str]) -> dict[str, str]:
    """Store a screenshot as an artifact; if the page does not paint, add a warning instead."""
    try:
        data = await take_screenshot(tab, seconds=ctx.seconds_left(SCREENSHOT_SECONDS))
    except (ContextLost, TimeoutError):
        warnings.append("No screenshot could be taken: the page kept changing.")
        return {}
    artifact_id = await ctx.save_artifact(
        data, name="screenshot.jpg", mime_type="image/jpeg", kind="screenshot"
    )
    return {"screenshotArtifactId": artifact_id}
