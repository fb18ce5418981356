"""The action `browser_go_back`: go back to the tab's earlier page."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

from runners.actions.catalogue import GO_BACK
from runners.actions.parameters import BrowserGoBack
from runners.actions.registration import action
from runners.actions.results import WentBack
from runners.browser.reading.page_ready import arrive
from runners.browser.session.tab import Tab
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.browser.tabs.task_tab import (
    TaskTab,
    check_page_address,
    page_notices,
    task_tab,
)
from runners.errors import InvalidTarget, NavigationFailed, NavigationTimeout, PageCrashed
from runners.tools.base import ToolContext

ERROR_PAGE = "chrome-error:"
POLL_SECONDS = 0.03
# Events of the DevTools protocol: another page or state is shown, or the navigation has ended.
_SHOWN = frozenset({"Page.frameNavigated", "Page.navigatedWithinDocument"})
_ENDED = "Page.frameStoppedLoading"


@action(GO_BACK)
async def browser_go_back(args: BrowserGoBack, ctx: ToolContext) -> WentBack:
    """Go back to the page, or the page's state, that the tab showed before. Fails with
    INVALID_PARAMETER if there is none.
    """
    until = ctx.deadline - RESERVE_SECONDS
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        current, entries = await _history(task.tab, until)
        earlier = entries[current - 1] if current > 0 else {"url": ""}
        if not earlier["url"].startswith(("http:", "https:")):
            message = "The tab showed no page before this one."
            raise InvalidTarget(message, details={"effect": "none"})
        check_page_address(earlier["url"], ctx)
        title, warnings = await _go_back(task, earlier, current, until)
        url = task.tab.page.url
        check_page_address(url, ctx)
        warnings += page_notices(task, ctx)
    return WentBack(url=url, title=title or None, warnings=warnings)


async def _go_back(
    task: TaskTab, earlier: Mapping[str, Any], current: int, until: float
) -> tuple[str, list[str]]:
    """Go from the history entry `current` to an earlier one; return its title and warnings.

    Raises:
        NavigationTimeout: It did not load in time.
        NavigationFailed: The server sent no page.
    """
    tab, details = task.tab, {"url": earlier["url"], "effect": "unknown"}
    try:
        with _events_of(tab) as seen:
            documents = tab.documents
            await _command(tab, "Page.navigateToHistoryEntry", until, {"entryId": earlier["id"]})
            while not await _has_arrived(tab, current, documents, seen, until):
                await asyncio.sleep(POLL_SECONDS)
        title, warnings = await arrive(tab, until=until)
    except (TimeoutError, NavigationTimeout):
        await tab.stop_loading()
        message = "The earlier page did not load in time."
        raise NavigationTimeout(message, details=details) from None
    except NavigationFailed as failed:
        failed.details |= details
        raise
    finally:
        task.last_input_at = time.monotonic()
    if tab.page.url.startswith(ERROR_PAGE):
        message = "The earlier page could not be opened; the browser shows an error page instead."
        raise NavigationFailed(message, details=details)
    return title, warnings


async def _has_arrived(
    tab: Tab, current: int, documents: int, seen: set[str], until: float
) -> bool:
    """Return whether the tab shows another history entry than `current`, of another document or of
    the same.

    Raises:
        NavigationFailed: The navigation has ended without a page.
        TimeoutError: The time is up.
    """
    if tab.documents != documents:
        return True
    if time.monotonic() >= until:
        raise TimeoutError
    if tab.is_leaving or not seen:
        return False
    try:
        entry, _ = await _history(tab, until)  # while a navigation is pending, its entry
    except PageCrashed:
        if not tab.is_alive:
            raise
        return False  # the browser does not answer while it exchanges the page
    if entry == current and _ENDED in seen:
        raise NavigationFailed("The server sent no page, but an empty response or a download.")
    return entry != current and bool(seen & _SHOWN) and not tab.is_leaving


@contextlib.contextmanager
def _events_of(tab: Tab) -> Iterator[set[str]]:
    """Yield a set that gets the names of the tab's navigation events."""
    seen: set[str] = set()
    listeners = {name: lambda _, name=name: seen.add(name) for name in (*_SHOWN, _ENDED)}
    for name, listener in listeners.items():
        tab.cdp.on(name, listener)
    try:
        yield seen
    finally:
        for name, listener in listeners.items():
            tab.cdp.remove_listener(name, listener)


async def _history(tab: Tab, until: float) -> tuple[int, list[dict[str, Any]]]:
    history = await _command(tab, "Page.getNavigationHistory", until)
    return history["currentIndex"], history["entries"]


async def _command(
    tab: Tab, method: str, until: float, params: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Send a command of the DevTools protocol; a TimeoutError means that the time is up."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    answer: dict[str, Any] = await tab.perform(tab.cdp.send(method, params or {}), seconds=seconds)
    return answer
