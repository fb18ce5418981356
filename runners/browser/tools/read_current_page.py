"""The tool `read_current_page`: read what the run's own tab shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictStr

from runners.browser.errors import ContextLost
from runners.browser.interaction.locator import ask
from runners.browser.interaction.page_reader import PageReader, wait_for_next_document
from runners.browser.interaction.run_tab import lease_run_tab
from runners.browser.parameters import ExtractOptions, WaitCondition
from runners.browser.session.tab import Tab
from runners.network.address import check_address
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

CHANGE_SECONDS = 4.0


class ReadCurrentPage(Closed):
    """What to read of the page."""

    extract: ExtractOptions = Field(default_factory=ExtractOptions)
    wait_for: WaitCondition | None = Field(
        default=None, alias="waitFor", description="Read the page only when this is true."
    )
    unlike: StrictStr | None = Field(
        default=None,
        max_length=100,
        description="A fingerprint: give the page a few seconds to become another one than that.",
    )


@tool("read_current_page", kind="browser", effect=Effect.READ, timeout_ms=180_000)
async def read_current_page(args: ReadCurrentPage, ctx: ToolContext) -> Mapping[str, Any]:
    """Read the page that the calls before left in the run's tab, as read_page reads an address.

    It waits for a document that a press asked for, and fails with NAVIGATION_TIMEOUT when that does
    not arrive, or when `waitFor` does not come true. `fingerprint` is the same for a page that says
    the same and leads to the same places.
    """
    async with lease_run_tab(ctx) as tab:
        if args.unlike is not None:
            await _change(tab, args.unlike)
        page = await PageReader(args.extract, args.wait_for, ctx.deadline).of_present(tab)
        page["fingerprint"] = await _fingerprint(tab)
        if ctx.trust != "local":
            check_address(page["url"], ctx.trust)
        return page


async def _change(tab: Tab, fingerprint: str) -> None:
    end = time.monotonic() + CHANGE_SECONDS
    await wait_for_next_document(tab, end + CHANGE_SECONDS * 6)
    while time.monotonic() < end and await _fingerprint(tab) == fingerprint:
        await asyncio.sleep(0.1)


async def _fingerprint(tab: Tab) -> str:
    try:
        return str((await ask(tab, "fingerprint", seconds=CHANGE_SECONDS))["fingerprint"])
    except ContextLost:
        return ""
