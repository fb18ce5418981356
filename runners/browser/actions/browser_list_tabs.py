"""The action `browser_list_tabs`: list the tabs of the task."""

from __future__ import annotations

import asyncio

from runners.actions.catalogue import LIST_TABS
from runners.actions.errors import TaskTabClosed
from runners.actions.parameters import BrowserListTabs
from runners.actions.registration import action
from runners.actions.results import OpenTab, TabList
from runners.browser.tabs.task_tab import task_tabs, title_of
from runners.tools.base import ToolContext


@action(LIST_TABS)
async def browser_list_tabs(args: BrowserListTabs, ctx: ToolContext) -> TabList:
    """List the task's tabs: the one that task_start opened, and those that its pages opened."""
    tabs = task_tabs(ctx.browser)
    if tabs is None or not tabs.open:
        raise TaskTabClosed("The task has no tab any more.")
    current, found = tabs.current, tabs.open
    titles = await asyncio.gather(*(title_of(task, ctx) for task in found))
    listed = [
        OpenTab(
            tabId=task.tab_id,
            url=ctx.mask(task.tab.page.url),
            title=title,
            current=True if task is current else None,
        )
        for task, title in zip(found, titles, strict=True)
    ]
    return TabList(tabs=listed)
