"""The action `browser_close_tab`: close one of several tabs of the task."""

from __future__ import annotations

from runners.actions.catalogue import CLOSE_TAB
from runners.actions.parameters import BrowserCloseTab
from runners.actions.registration import action
from runners.actions.results import TabClosed
from runners.browser.tabs.task_tab import find_task_tab, title_of
from runners.errors import InvalidTarget
from runners.tools.base import ToolContext


@action(CLOSE_TAB)
async def browser_close_tab(args: BrowserCloseTab, ctx: ToolContext) -> TabClosed:
    """Close one of several tabs of the task, and return the tab that is current then. The only tab
    is closed by task_stop.
    """
    session, tabs, task = find_task_tab(ctx, args.tab_id)
    if not await session.close_opened_tab(task.tab) and task.tab.is_alive:
        raise InvalidTarget(
            "It is the task's only tab; task_stop with closeTab closes it.",
            details={"tabId": task.tab_id},
        )
    task.release()
    current = tabs.current
    return TabClosed(
        tabId=current.tab_id, url=ctx.mask(current.tab.page.url), title=await title_of(current, ctx)
    )
