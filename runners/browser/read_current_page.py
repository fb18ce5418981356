"""The tool `read_current_page`: read what the run's own tab shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from runners.base import Closed, Effect, ToolContext
from runners.browser.address import check_address
from runners.browser.own_tab import own_tab
from runners.browser.reading import Reading
from runners.browser.vocabulary import ExtractOptions, WaitCondition
from runners.registry import tool


class ReadCurrentPage(Closed):
    """What to read of the page."""

    extract: ExtractOptions = Field(default_factory=ExtractOptions)
    wait_for: WaitCondition | None = Field(
        default=None, alias="waitFor", description="Read the page only when this is true."
    )


@tool("read_current_page", kind="browser", effect=Effect.READ, timeout_ms=180_000)
async def read_current_page(args: ReadCurrentPage, ctx: ToolContext) -> Mapping[str, Any]:
    """Read the page that the calls before left in the run's tab, as read_page reads an address.

    It waits for a document that a press asked for, and fails with NAVIGATION_TIMEOUT when that does
    not arrive, or when `waitFor` does not come true.
    """
    async with own_tab(ctx) as tab:
        page = await Reading(args.extract, args.wait_for, ctx.deadline).of_present(tab)
        if ctx.trust != "local":
            check_address(page["url"], ctx.trust)
        return page
