"""The tool `open_page`: open a URL in the run tab, for the calls that follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictStr

from runners.actions.own_pages import check_shown_page, page_to_open
from runners.browser.parameters import ExtractOptions, WaitCondition
from runners.browser.reading.page_reader import PageReader
from runners.browser.tabs.run_tab import lease_run_tab
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

TITLE_ONLY = ExtractOptions.model_validate({"pageInfo": False, "content": False})
PAGE_KEYS = ("url", "title", "pageType", "httpStatus", "warnings")


class OpenPage(Closed):
    """What to open."""

    url: StrictStr = Field(description="An http or https URL.")
    wait_for: WaitCondition | None = Field(
        default=None, alias="waitFor", description="Return only when this is true."
    )


@tool("open_page", kind="browser", effect=Effect.READ, timeout_ms=60_000)
async def open_page(args: OpenPage, ctx: ToolContext) -> Mapping[str, Any]:
    """Open a web page in the tab that the steps of a run share, and wait until it has loaded.

    Returns its url, title, pageType and httpStatus. A page with an HTTP error status is opened
    anyway and named in `warnings`.
    """
    url = page_to_open(args.url, ctx.trust)
    async with lease_run_tab(ctx, fresh=True) as tab:
        page = await PageReader(TITLE_ONLY, args.wait_for, ctx.deadline).open_and_read(tab, url)
        check_shown_page(page["url"], ctx.trust)
        return {key: page[key] for key in PAGE_KEYS}
