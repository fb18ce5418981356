"""The tool `watch_search`: note what the run's page shows before a search is submitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.browser.interaction import search_watch
from runners.browser.interaction.run_tab import lease_run_tab
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool


class WatchSearch(Closed):
    """No arguments."""


@tool("watch_search", kind="browser", effect=Effect.READ, timeout_ms=20_000)
async def watch_search(args: WatchSearch, ctx: ToolContext) -> Mapping[str, Any]:
    """Watch what the run's page requests and shows from now on, until confirm_search.

    Call it right before the search is submitted.
    """
    async with lease_run_tab(ctx) as tab:
        await search_watch.watch_search(tab)
        return {"watching": True}
