"""The action `task_start`: open the task's own tab on a page."""

from __future__ import annotations

from runners.actions.catalogue import TASK_START
from runners.actions.errors import TaskTabClosed
from runners.actions.own_pages import page_to_open
from runners.actions.parameters import TaskStart
from runners.actions.registration import action
from runners.actions.results import TaskStarted
from runners.browser.errors import browser_errors, browser_lost
from runners.browser.reading.page_ready import open_address
from runners.browser.session.session import OpenBrowserSession
from runners.browser.session.tab import Tab
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.browser.tabs.stored_downloads import store_downloads
from runners.browser.tabs.task_tab import (
    EMPTY_PAGE,
    TaskTab,
    check_page_address,
    current_task_tab,
    end_task,
    lost_page_as_closed_tab,
    page_notices,
    start_task,
    title_of,
)
from runners.errors import ToolFailed
from runners.tools.base import ToolContext

WINDOW_SECONDS = 5.0


@action(TASK_START, opens_browser=True)
async def task_start(args: TaskStart, ctx: ToolContext) -> TaskStarted:
    """Open the task's own tab (a task: the work in one browser session), in the background, on
    `url` or an empty page, and wait until it is parsed. All other actions work only on this
    tab, by the returned tabId. Also use it to navigate to another URL, or back to an earlier one:
    give `url` with `reuseExistingTab`.

    An earlier tab of the task is closed, unless `reuseExistingTab` is true. A page with an HTTP
    error status is opened anyway and named in `warnings`. Fails with INVALID_TARGET for the
    product's own pages.
    """
    session = ctx.browser
    if session is None:
        raise TaskTabClosed("This call has no browser.")
    url = None if args.url is None else page_to_open(args.url, ctx.trust)
    earlier = current_task_tab(session) if args.reuse_existing_tab else None
    if earlier is None:
        await end_task(session)
        await session.close_run_tab()
    switch_to = None if earlier is None else earlier.tab
    async with session.run_tab(fresh=True, switch_to=switch_to) as tab:
        task = _task_of(session, tab)
        with lost_page_as_closed_tab(task):
            return await _open(task, url, args, ctx)


async def _open(task: TaskTab, url: str | None, args: TaskStart, ctx: ToolContext) -> TaskStarted:
    tab = task.tab
    tab.watch.take_notices()  # discard those of the previous page
    title, warnings = "", list[str]()
    if url is not None:
        title, warnings = await _open_address(task, url, ctx)
    elif not args.reuse_existing_tab and tab.requested_url:
        await tab.navigate(EMPTY_PAGE, seconds=ctx.seconds_left())
    check_page_address(tab.page.url, ctx)
    downloads, download_warnings = await store_downloads(task, ctx)
    warnings += download_warnings + page_notices(task, ctx)
    if args.group_title is not None:
        warnings.append("This browser has no tab groups; groupTitle was ignored.")
    return TaskStarted(
        tabId=task.tab_id,
        windowId=await _window_of(task),
        url=tab.page.url,
        title=title or None,
        downloads=downloads,
        warnings=warnings,
    )


async def _open_address(task: TaskTab, url: str, ctx: ToolContext) -> tuple[str, list[str]]:
    """Open a URL, and return its title and warnings; the tab keeps its page if it is a download.

    Raises:
        ToolFailed: As `open_address`.
    """
    until = ctx.deadline - RESERVE_SECONDS
    try:
        return await open_address(task.tab, url, until=until)
    except ToolFailed as failed:
        if failed.details.get("reason") != "download":
            raise
        task.tab.mark_settled()
        return await title_of(task, ctx) or "", []


def _task_of(session: OpenBrowserSession, tab: Tab) -> TaskTab:
    """Return the session's task tab for this tab; start a new task if there is none."""
    current = current_task_tab(session)
    if current is not None and current.tab is tab:
        return current
    return start_task(session, tab)


async def _window_of(task: TaskTab) -> int:
    if task.window_id is None:
        requesting = task.tab.cdp.send("Browser.getWindowForTarget")
        try:
            window = await task.tab.perform(requesting, seconds=WINDOW_SECONDS)
        except browser_errors():
            raise browser_lost() from None
        task.window_id = int(window["windowId"])
    return task.window_id
