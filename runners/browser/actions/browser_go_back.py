"""The action `browser_go_back`: go back to the tab's earlier page."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import GO_BACK
from runners.actions.parameters import BrowserGoBack
from runners.actions.registration import action
from runners.actions.results import WentBack
from runners.browser.action_support.page_ready import go_back
from runners.browser.action_support.task_tab import check_page_address, page_notices, task_tab
from runners.browser.interaction.run_tab import RESERVE_SECONDS
from runners.tools.base import ToolContext


@action(GO_BACK, kind="browser")
async def browser_go_back(args: BrowserGoBack, ctx: ToolContext) -> Mapping[str, Any]:
    """Go back to the page, or the page's state, that the tab showed before. Fails with
    INVALID_PARAMETER if there is none.
    """
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        title, warnings = await go_back(
            task.tab,
            until=ctx.deadline - RESERVE_SECONDS,
            check_url=lambda url: check_page_address(url, ctx),
        )
        task.last_input_at = time.monotonic()
        url = task.tab.page.url
        check_page_address(url, ctx)
        warnings += page_notices(task, ctx)
    return WentBack(url=url, title=title or None, warnings=warnings).as_output()
