"""The action `browser_switch_tab`: show another tab of the task."""

from __future__ import annotations

from runners.actions.catalogue import SWITCH_TAB
from runners.actions.parameters import BrowserSwitchTab
from runners.actions.registration import action
from runners.actions.results import TabShown
from runners.browser.tabs.task_tab import page_notices, task_tab, title_of
from runners.tools.base import ToolContext


@action(SWITCH_TAB)
async def browser_switch_tab(args: BrowserSwitchTab, ctx: ToolContext) -> TabShown:
    """Show another tab of the task, such as one that a page opened. Every action works on the tab
    of its tabId; a person who watches sees the one that was used last.
    """
    async with task_tab(ctx, args.tab_id) as task:
        return TabShown(
            tabId=task.tab_id,
            url=ctx.mask(task.tab.page.url),
            title=await title_of(task, ctx),
            warnings=page_notices(task, ctx),
        )
