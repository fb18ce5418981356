"""The tool `read_current_page`: read what the run tab shows."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictBool, StrictStr

from runners.actions.own_pages import check_shown_page
from runners.browser.errors import ContextLost
from runners.browser.parameters import ExtractOptions, WaitCondition
from runners.browser.reading.page_reader import PageReader, wait_for_next_document
from runners.browser.reading.page_text import fit_content, reading_whole
from runners.browser.reading.page_watch import since_submit
from runners.browser.session.tab import Tab
from runners.browser.tabs.run_tab import lease_run_tab
from runners.errors import ConditionNotMet
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

ANSWER_SECONDS = 4.0
CHANGE_SECONDS = 4.0
UNPROVEN_SECONDS = 2.0  # more, until a changed text has held still longer than a clock would
MAX_CLOCKS = 2  # texts that may be clocks; if more change, the page is another one
LATE_SECONDS = 24.0  # more, while the page waits for what it requested


class ReadCurrentPage(Closed):
    """What to read from the page."""

    extract: ExtractOptions = Field(default_factory=ExtractOptions)
    wait_for: WaitCondition | None = Field(
        default=None, alias="waitFor", description="Read the page only after this is true."
    )
    condition_name: StrictStr = Field(
        default="waitFor",
        min_length=1,
        max_length=100,
        alias="conditionName",
        description="How the caller calls `waitFor`, for errors.",
    )
    whole: StrictBool = Field(
        default=False, description="Return the whole text, whatever maxContentLength is."
    )
    unlike: StrictStr | None = Field(
        default=None,
        max_length=100,
        description="A fingerprint: wait a few seconds for the page to differ from it, and longer"
        " while the page requests data. What changes by itself, such as a clock, does not count, if"
        " the page was read with isCompared.",
    )
    is_compared: StrictBool = Field(
        default=False,
        alias="isCompared",
        description="True: the next call compares with this page (`unlike`).",
    )


@tool("read_current_page", kind="browser", effect=Effect.READ, timeout_ms=180_000)
async def read_current_page(args: ReadCurrentPage, ctx: ToolContext) -> Mapping[str, Any]:
    """Read the page that earlier calls left in the run's tab, as read_page reads a URL.

    It waits for a navigation that a click started, and fails with NAVIGATION_TIMEOUT if the next
    document does not load, or if `waitFor` does not become true; then details.shown is what the
    page shows, and details.afterSubmit what it did since watch_page. `fingerprint` is equal for
    pages with the same text and links.
    """
    async with lease_run_tab(ctx) as tab:
        is_other = args.unlike is None or await _wait_for_change(tab, args.unlike)
        reader = PageReader(
            reading_whole(args.extract),
            args.wait_for,
            ctx.deadline,
            condition_name=args.condition_name,
        )
        try:
            page = await reader.read_current(tab)
        except ConditionNotMet as failure:
            did = await since_submit(tab)
            raise failure if did is None else failure.after_submit(did) from None
        page["fingerprint"] = await _fingerprint(tab) if is_other else args.unlike
        if args.is_compared:
            await _remember(tab)
        check_shown_page(page["url"], ctx.trust)
    if args.whole:
        return page
    return await fit_content(page, args.extract.max_content_length, ctx.save_artifact)


async def _wait_for_change(tab: Tab, fingerprint: str) -> bool:
    """Wait for the page to differ from the one with this fingerprint, other than by itself; return
    whether it does.
    """
    deadline = time.monotonic() + CHANGE_SECONDS
    await wait_for_next_document(tab, deadline + LATE_SECONDS)
    while True:
        is_other, may_be_other = await _compare(tab, fingerprint)
        if is_other:
            return True
        late = time.monotonic() - deadline
        is_unproven = may_be_other and late < UNPROVEN_SECONDS
        if late >= LATE_SECONDS or (late > 0 and not is_unproven and not await _is_busy(tab)):
            return False
        await asyncio.sleep(0.1)


async def _compare(tab: Tab, fingerprint: str) -> tuple[bool, bool]:
    """Return whether the page differs from the one with this fingerprint, and whether it may: a few
    texts differ, which may be clocks.
    """
    if await _fingerprint(tab) == fingerprint:
        return False, False
    try:
        change = await tab.run_command("shownChange", seconds=ANSWER_SECONDS)
    except ContextLost:
        return False, True
    if change["pieces"] is None:  # another document
        return True, False
    return change["stays"] or change["pieces"] > MAX_CLOCKS, change["pieces"] > 0


async def _remember(tab: Tab) -> None:
    """Compare the page from now on with what it shows now."""
    with contextlib.suppress(ContextLost):
        await tab.run_command("watchTexts", {"learns": False}, seconds=ANSWER_SECONDS)


async def _is_busy(tab: Tab) -> bool:
    try:
        return bool((await tab.run_command("busy", seconds=ANSWER_SECONDS))["busy"])
    except ContextLost:
        return True


async def _fingerprint(tab: Tab) -> str:
    try:
        return str((await tab.run_command("fingerprint", seconds=ANSWER_SECONDS))["fingerprint"])
    except ContextLost:
        return ""
