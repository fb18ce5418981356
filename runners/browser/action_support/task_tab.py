"""The tab of a task: the run tab under the id that task_start assigned (S1 §4.7).

It outlives a run if its browser session does.
"""

from __future__ import annotations

import contextlib
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
from runners.actions.own_pages import refuse_own_page
from runners.browser.errors import browser_errors
from runners.browser.interaction.page_reader import GRACE_SECONDS, wait_for_next_document
from runners.browser.interaction.run_tab import RESERVE_SECONDS
from runners.browser.observation.page_events import PageEvents
from runners.browser.session.tab import Tab
from runners.errors import PageCrashed
from runners.network.address import check_address
from runners.tools.base import ToolContext

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from runners.browser.session.session import OpenBrowserSession

TASK_TAB = "the task's tab"
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
    """

    tab: Tab
    tab_id: int
    next_click_id: int = 1
    last_input_at: float = 0.0
    picture_scale: float = 1.0
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

    async def close(self) -> None:
        """Drop the CDP session, which ends with its page, and keep no more downloads."""
        self.detach()
        self.tab.downloads.is_keeping = False


async def _opened(opening: object) -> CDPSession:
    try:
        return await opening  # type: ignore[misc,no-any-return]
    except browser_errors() as error:
        message = str(error).lower()
        if "not allowed" in message or "permission" in message:
            raise CdpPermissionDenied("The browser does not allow attaching to this tab.") from None
        raise CdpUnavailable("The browser could not attach to the tab.") from None


def current_task_tab(session: OpenBrowserSession | None) -> TaskTab | None:
    """Return the session's task tab, if it has one that is alive."""
    stored = None if session is None else session.resources.get(TASK_TAB)
    return stored if isinstance(stored, TaskTab) and stored.tab.is_alive else None


@contextlib.asynccontextmanager
async def task_tab(
    ctx: ToolContext, tab_id: int, *, settled: bool = False
) -> AsyncIterator[TaskTab]:
    """Lease the task's tab.

    Args:
        settled: wait for the navigation that the last input started, if any.

    Raises:
        InvalidTaskTab: The id belongs to another tab.
        TaskTabClosed: The tab does not exist any more, or it was lost meanwhile.
        OwnPage: It shows a page of this product, itself or in a frame.
        AddressNotAllowed: It shows a page that this caller may not read.
        NavigationTimeout: The next document did not load.
    """
    session = ctx.browser
    stored = None if session is None else session.resources.get(TASK_TAB)
    if isinstance(stored, TaskTab) and stored.tab_id != tab_id:
        raise InvalidTaskTab(
            f"The tab {tab_id} is not this task's.", details={"taskTabId": stored.tab_id}
        )
    task = current_task_tab(session)
    if session is None or task is None:
        raise TaskTabClosed("The task has no tab any more.", details={"tabId": tab_id})
    with lost_page_as_closed_tab(task):
        # `fresh`, because a later run of the same task continues with its page.
        async with session.run_tab(fresh=True) as tab:
            if tab is not task.tab:
                raise PageCrashed("The task's tab is gone.")
            if settled:
                await task.wait_for_navigation(ctx.deadline - RESERVE_SECONDS)
            check_page_address(tab.page.url, ctx)
            check_frames(tab)
            yield task


@contextlib.contextmanager
def lost_page_as_closed_tab(task: TaskTab) -> Iterator[None]:
    """Raise TaskTabClosed for a page that is lost inside."""
    try:
        yield
    except PageCrashed as lost:
        raise TaskTabClosed(
            "The task's tab was closed, or its page died.",
            details={"tabId": task.tab_id, **lost.details},
        ) from None


def page_notices(task: TaskTab, ctx: ToolContext) -> list[str]:
    """Return warnings about what the page did by itself since the last warnings."""
    return [ctx.mask(notice) for notice in task.tab.take_notices()]


def check_frames(tab: Tab) -> None:
    """Raise OwnPage if a frame shows a page of this product, because input could reach it there."""
    for frame in tab.page.frames[1:]:
        refuse_own_page(frame.url)


def check_page_address(url: str, ctx: ToolContext) -> None:
    """Check that agents may act on the page of this URL and that the caller may read it.

    Raises:
        OwnPage, AddressNotAllowed: They may not.
    """
    refuse_own_page(url)
    if ctx.trust != "local" and url.startswith(("http:", "https:")):
        check_address(url, ctx.trust)
