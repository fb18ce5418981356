"""The tool `confirm_search`: check that a search that was submitted happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictBool, StrictStr

from runners.browser.reading import page_watch
from runners.browser.tabs.run_tab import lease_run_tab
from runners.tools.base import Closed, Effect, ToolContext, Whole
from runners.tools.registry import tool


class ConfirmSearch(Closed):
    """Which search was submitted."""

    query: StrictStr = Field(min_length=1, max_length=2000, description="What was searched for.")
    has_results: StrictBool = Field(
        default=False,
        alias="hasResults",
        description="True: the results are known to be shown; nothing is waited for.",
    )
    timeout_ms: Whole = Field(
        default=10_000, ge=1, le=60_000, alias="timeoutMs", description="How long to wait."
    )


@tool("confirm_search", kind="browser", effect=Effect.READ, timeout_ms=80_000)
async def confirm_search(args: ConfirmSearch, ctx: ToolContext) -> Mapping[str, Any]:
    """Wait until a search that was submitted after watch_page has shown its results.

    It happened if the query is in a request or in the page's address, or if what the page shows
    changed and then held still for 500 ms; clocks and counters do not count. Returns evidence:
    request, address, page or results; fails if nothing shows that the search happened.
    """
    async with lease_run_tab(ctx) as tab:
        evidence, warnings = await page_watch.confirm_search(
            tab,
            args.query,
            has_results=args.has_results,
            seconds=ctx.seconds_left(args.timeout_ms / 1000),
        )
        return {"evidence": evidence, "warnings": warnings}
