"""The tool `watch_page`: watch what the run's page requests and shows after a submit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictBool

from runners.browser.reading.form_watch import form_before
from runners.browser.reading.page_watch import watch
from runners.browser.tabs.run_tab import lease_run_tab
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool


class WatchPage(Closed):
    """Whether a submit follows."""

    learns: StrictBool = Field(
        default=False,
        description="True: nothing is submitted yet. What the page requests and changes until the"
        " next watch_page, it does by itself; that does not count later.",
    )


@tool("watch_page", kind="browser", effect=Effect.READ, timeout_ms=20_000)
async def watch_page(args: WatchPage, ctx: ToolContext) -> Mapping[str, Any]:
    """Watch what the run's page requests and shows from now on.

    Call it right before a search or form is submitted: confirm_search and wait_for say what
    happened. With `learns`, call it when the page was opened.
    """
    async with lease_run_tab(ctx) as tab:
        await watch(tab, learns=args.learns)
        if tab.submit_watch is not None and not args.learns:
            tab.submit_watch.form = await form_before(tab)
        return {"watching": True}
