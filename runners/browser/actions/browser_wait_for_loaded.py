"""The action `browser_wait_for_loaded`: wait until the task's page has loaded."""

from __future__ import annotations

import time

from runners.actions.catalogue import WAIT_FOR_LOADED
from runners.actions.parameters import BrowserWaitForLoaded
from runners.actions.registration import action
from runners.actions.results import PageLoaded
from runners.browser.reading.page_ready import wait_for_document
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.browser.tabs.stored_downloads import store_downloads
from runners.browser.tabs.task_tab import page_notices, task_tab
from runners.tools.base import ToolContext

ERROR_PAGE = "chrome-error:"
NOT_OPENED = "The requested page could not be opened; the browser shows an error page instead."


@action(WAIT_FOR_LOADED)
async def browser_wait_for_loaded(args: BrowserWaitForLoaded, ctx: ToolContext) -> PageLoaded:
    """Wait until the task's page has loaded, with its images and styles, including a page to which
    the last click or key navigates, and until its downloads have finished. Fails with
    NAVIGATION_TIMEOUT after `timeoutMs`.
    """
    async with task_tab(ctx, args.tab_id) as task:
        seconds = min(args.timeout_ms / 1000, max(0.1, ctx.seconds_left() - RESERVE_SECONDS))
        deadline = time.monotonic() + seconds
        await task.wait_for_navigation(deadline)
        await wait_for_document(task.tab, wholly=True, until=deadline)
        task.tab.mark_settled()
        downloads, warnings = await store_downloads(task, ctx, until=deadline)
        warnings += page_notices(task, ctx)
        if task.tab.page.url.startswith(ERROR_PAGE):
            warnings.append(NOT_OPENED)
    return PageLoaded(downloads=downloads, warnings=warnings)
