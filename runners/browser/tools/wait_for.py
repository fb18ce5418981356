"""The tool `wait_for`: wait for a condition on the run's page, and return whether it came true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictBool

from runners.browser.parameters import WaitCondition
from runners.browser.reading.form_watch import form_shown_again
from runners.browser.reading.page_reader import PageReader
from runners.browser.reading.page_watch import has_reacted
from runners.browser.tabs.run_tab import lease_run_tab
from runners.browser.tools.open_page import PAGE_KEYS, TITLE_ONLY
from runners.errors import ConditionNotMet
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool


class WaitFor(Closed):
    """What to wait for."""

    condition: WaitCondition | None = None
    ends_watch: StrictBool = Field(
        default=False,
        alias="endsWatch",
        description="True: tell what happened since watch_page, and stop watching.",
    )


@tool("wait_for", kind="browser", effect=Effect.READ, timeout_ms=180_000)
async def wait_for(args: WaitFor, ctx: ToolContext) -> Mapping[str, Any]:
    """Wait until the run's page has loaded and, if one is given, the condition is true.

    If the condition does not become true, `met` is false; that is not a failure. Returns met (null
    without a condition), url, title, pageType, httpStatus, warnings, refusedFields[] {field, says}:
    fields that the page marks as wrong, and, of a page that watch_page watched, reacted: whether it
    requested or showed anything since, and formAgain {seemsAccepted, newText}: the page shows the
    form that was filled again (else null).
    """
    async with lease_run_tab(ctx) as tab:
        met = None if args.condition is None else True
        try:
            page = await PageReader(TITLE_ONLY, args.condition, ctx.deadline).read_current(tab)
        except ConditionNotMet:
            met = False
            page = await PageReader(TITLE_ONLY, None, ctx.deadline).read_current(tab)
        before = tab.submit_watch.form if tab.submit_watch is not None else None
        reacted = await has_reacted(tab) if args.ends_watch else None
        answer = await tab.run_command("refusedFields", seconds=ctx.seconds_left(5.0))
        again = None
        if reacted and before is not None and not answer["refused"]:
            again = await form_shown_again(tab, before)
        return {
            "met": met,
            **{key: page[key] for key in PAGE_KEYS},
            "refusedFields": answer["refused"],
            "reacted": reacted,
            "formAgain": again,
        }
