"""The tabs of a task: the run tab under the id that task_start assigned (S1 §4.7), and the tabs
that its pages opened.

They outlive a run if its browser session does.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runners.actions.errors import (
    CdpPermissionDenied,
    CdpUnavailable,
    InvalidTaskTab,
    TaskTabClosed,
)
from runners.actions.own_pages import check_shown_page, refuse_own_page
from runners.browser.errors import browser_errors
from runners.browser.reading.page_events import PageEvents
from runners.browser.reading.page_reader import GRACE_SECONDS, wait_for_next_document
from runners.browser.session.tab import Tab
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.errors import PageCrashed
from runners.tools.base import ToolContext

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

    from runners.browser.session.session import OpenBrowserSession

TASK_TABS = "the task's tabs"
MAX_TABS = 20
MIN_TAB_ID, TAB_IDS = 100_000, 900_000_000  # random, so that a lost worker's id is not reused
WINDOW_SECONDS = 1.0  # until a window that a page opened is one of the task's tabs
TITLE_SECONDS = 0.5
POLL_SECONDS = 0.02
EMPTY_PAGE = "about:blank"
ATTACH_SECONDS = 4.0


@dataclass(slots=True)
class TaskTab:
    """A task's tab.

    Attributes:
        next_click_id: the lowest clickId for elements of a later document.
        last_input_at: `time.monotonic()` of the last input.
        picture_scale: pixels of the last screenshot per CSS pixel: clicks by x and y are in its
            pixels.
        events: what the page did by itself since its last observation.
        windows_kept: how many of `tab.windows_opened` have become tabs, or were closed.
    """

    tab: Tab
    tab_id: int
    next_click_id: int = 1
    last_input_at: float = 0.0
    picture_scale: float = 1.0
    windows_kept: int = 0
    window_id: int | None = None
    events: PageEvents = field(init=False)
    _cdp: CDPSession | None = None

    def __post_init__(self) -> None:
        """Collect the page's events from now on."""
        self.events = PageEvents(self.tab.page)

    async def attach(self) -> CDPSession:
        """Return the CDP session for mouse and keyboard input; the first call opens it.

        Raises:
            CdpUnavailable, CdpPermissionDenied: The browser does not open one.
            PageCrashed: The page is lost.
        """
        if self._cdp is None:
            opening = self.tab.page.context.new_cdp_session(self.tab.page)
            try:
                self._cdp = await self.tab.perform(_opened(opening), seconds=ATTACH_SECONDS)
            except TimeoutError:
                raise CdpUnavailable("The browser did not attach to the tab in time.") from None
        return self._cdp

    def detach(self) -> None:
        """Drop the CDP session; the next input opens another one."""
        self._cdp = None

    async def wait_for_navigation(self, until: float) -> None:
        """Wait for the navigation that the last input started, if any.

        Raises:
            NavigationTimeout, PageCrashed: As `wait_for_next_document`.
        """
        if self.tab.is_leaving or time.monotonic() < self.last_input_at + GRACE_SECONDS:
            await wait_for_next_document(self.tab, until)

    async def wait_for_windows(self, until: float) -> None:
        """Wait shortly until the windows that the page has opened are tabs of the task."""
        until = min(until, time.monotonic() + WINDOW_SECONDS)
        while self.windows_kept < self.tab.windows_opened and time.monotonic() < until:
            await asyncio.sleep(POLL_SECONDS)
        self.windows_kept = self.tab.windows_opened  # a window of the same name is used again

    def release(self) -> None:
        """Drop the CDP session, which ends with its page; keep no more downloads and windows."""
        self.detach()
        self.tab.downloads.is_keeping = False
        self.tab.watch.popup_handler = None


class TaskTabs:
    """All tabs of a task: the one that task_start opened, and those that their pages opened."""

    def __init__(self, session: OpenBrowserSession, tab: Tab) -> None:
        self._session = session
        self._all: list[TaskTab] = []
        self._keeping: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._add(tab)

    @property
    def open(self) -> list[TaskTab]:
        """The tabs that are open, in the order of their opening."""
        return [task for task in self._all if task.tab.is_alive]

    @property
    def current(self) -> TaskTab:
        """The tab that the live page shows; another open one if that is lost, if there is one."""
        shown = [task for task in self.open if self._session.is_run_tab(task.tab)]
        return (shown or self.open or self._all)[-1]

    def find(self, tab_id: int) -> TaskTab | None:
        """Return the tab of this id, open or lost; None if it is not the task's."""
        return next((task for task in self._all if task.tab_id == tab_id), None)

    async def close(self) -> None:
        """Release the tabs; their pages end with the session, and windows that come are closed."""
        self._is_closed = True
        for task in self._all:
            task.release()

    def _add(self, tab: Tab) -> TaskTab:
        task = TaskTab(tab, MIN_TAB_ID + secrets.randbelow(TAB_IDS))
        self._all.append(task)
        tab.downloads.is_keeping = True
        tab.watch.popup_handler = lambda popup: self._on_popup(task, popup)
        return task

    def _on_popup(self, opener: TaskTab, popup: Page) -> None:
        keeping = asyncio.create_task(self._keep(opener, popup))
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)

    async def _keep(self, opener: TaskTab, popup: Page) -> None:
        try:
            if len(self.open) + len(self._keeping) > MAX_TABS:
                await popup.close()
                opener.tab.watch.add_notice(
                    f"The page opened a new window, which was closed: a task has at most {MAX_TABS}"
                    " tabs; browser_close_tab closes one."
                )
                return
            tab = await self._session.keep_popup(popup)
            opener.tab.watch.hand_over(popup)
            if self._is_closed:
                await self._session.close_opened_tab(tab)
                return
            task = self._add(tab)
            url = popup.url if popup.url.startswith("http") else "an empty page"
            opener.tab.watch.add_notice(f"The page opened the tab {task.tab_id} with {url[:500]}.")
        except browser_errors():
            opener.tab.watch.add_notice("The page opened a new window, which is closed again.")
        finally:
            # `wait_for_windows` may have given this one up, and has counted it then.
            opener.windows_kept = min(opener.windows_kept + 1, opener.tab.windows_opened)


async def _opened(opening: object) -> CDPSession:
    try:
        return await opening  # type: ignore[misc,no-any-return]
    except browser_errors() as error:
        message = str(error).lower()
        if "not allowed" in message or "permission" in message:
            raise CdpPermissionDenied("The browser does not allow attaching to this tab.") from None
        raise CdpUnavailable("The browser could not attach to the tab.") from None


def task_tabs(session: OpenBrowserSession | None) -> TaskTabs | None:
    """Return the session's task tabs, if a task was started in it."""
    stored = None if session is None else session.resources.get(TASK_TABS)
    return stored if isinstance(stored, TaskTabs) else None


async def end_task(session: OpenBrowserSession) -> None:
    """Release the tabs of the session's task, if one was started in it."""
    tabs = session.resources.pop(TASK_TABS, None)
    if tabs is not None:
        await tabs.close()


def start_task(session: OpenBrowserSession, tab: Tab) -> TaskTab:
    """Make the run tab the only tab of a new task of the session."""
    tabs = session.resources[TASK_TABS] = TaskTabs(session, tab)
    return tabs.current


def current_task_tab(session: OpenBrowserSession | None) -> TaskTab | None:
    """Return the session's current task tab, if it has one that is alive."""
    tabs = task_tabs(session)
    return tabs.current if tabs is not None and tabs.current.tab.is_alive else None


def find_task_tab(ctx: ToolContext, tab_id: int) -> tuple[OpenBrowserSession, TaskTabs, TaskTab]:
    """Return the session, the task's tabs, and the one of this id.

    Raises:
        InvalidTaskTab: The id belongs to another tab, or to one that is closed while others of the
            task are open.
        TaskTabClosed: No tab of the task is open.
    """
    session, tabs = ctx.browser, task_tabs(ctx.browser)
    task = None if tabs is None else tabs.find(tab_id)
    if tabs is not None and (task is None or (not task.tab.is_alive and tabs.open)):
        raise InvalidTaskTab(
            f"The tab {tab_id} is not this task's, or is closed.",
            details={"taskTabId": tabs.current.tab_id},
        )
    if session is None or tabs is None or task is None or not task.tab.is_alive:
        raise TaskTabClosed("The task has no tab any more.", details={"tabId": tab_id})
    return session, tabs, task


@contextlib.asynccontextmanager
async def task_tab(
    ctx: ToolContext, tab_id: int, *, settled: bool = False
) -> AsyncIterator[TaskTab]:
    """Lease a tab of the task, which becomes the current one.

    Args:
        settled: wait for the navigation that the last input started, if any.

    Raises:
        InvalidTaskTab, TaskTabClosed: As `find_task_tab`; or it was lost meanwhile.
        OwnPage: It shows a page of this product, itself or in a frame.
        AddressNotAllowed: It shows a page that this caller may not read.
        NavigationTimeout: The next document did not load.
    """
    session, tabs, task = find_task_tab(ctx, tab_id)
    with lost_page_as_closed_tab(task, tabs):
        # `fresh`, because a later run of the same task continues with its page.
        async with session.run_tab(fresh=True, switch_to=task.tab) as tab:
            if tab is not task.tab:
                raise PageCrashed("The task's tab is gone.")
            if settled:
                await task.wait_for_navigation(ctx.deadline - RESERVE_SECONDS)
            check_page_address(tab.page.url, ctx)
            check_frames(tab)
            yield task


@contextlib.contextmanager
def lost_page_as_closed_tab(task: TaskTab, tabs: TaskTabs | None = None) -> Iterator[None]:
    """Raise TaskTabClosed for a page that is lost inside; InvalidTaskTab if others are open."""
    try:
        yield
    except PageCrashed as lost:
        task.tab.watch.fail(lost)  # pages report nothing if the browser's driver died
        if tabs is not None and tabs.open:
            details = {**lost.details, "taskTabId": tabs.current.tab_id}
            raise InvalidTaskTab(
                f"The tab {task.tab_id} was closed, perhaps by its page because of this action.",
                details=details,
            ) from None
        raise TaskTabClosed(
            "The task's tab was closed, or its page died.",
            details={"tabId": task.tab_id, **lost.details},
        ) from None


def page_notices(task: TaskTab, ctx: ToolContext) -> list[str]:
    """Return warnings about what the page did by itself since the last warnings."""
    return [ctx.mask(notice) for notice in task.tab.watch.take_notices()]


async def title_of(task: TaskTab, ctx: ToolContext) -> str | None:
    """Return the title of the tab's page; None if it has none, or does not answer soon."""
    try:
        title = await asyncio.wait_for(task.tab.page.title(), TITLE_SECONDS)
    except browser_errors():
        return None
    return ctx.mask(" ".join(title.split()))[:200] or None


def check_frames(tab: Tab) -> None:
    """Raise OwnPage if a frame shows a page of this product, because input could reach it there."""
    for frame in tab.page.frames[1:]:
        refuse_own_page(frame.url)


def check_page_address(url: str, ctx: ToolContext) -> None:
    """Check that agents may act on the page of this URL and that the caller may read it.

    Raises:
        OwnPage, AddressNotAllowed: They may not.
    """
    check_shown_page(url, ctx.trust)
