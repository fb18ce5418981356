"""The tab of a task: the one that the run's steps share, under the number that task_start gave it
(S1 §4.7). It outlives a run where its session does.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
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
from runners.browser.session.tab import Tab
from runners.errors import PageCrashed
from runners.network.address import check_address
from runners.tools.base import ToolContext

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from runners.browser.session.session import BrowserSession

TASK_TAB = "the task's tab"
EMPTY_PAGE = "about:blank"
ATTACH_SECONDS = 4.0


@dataclass(slots=True)
class TaskTab:
    """A task's tab.

    Attributes:
        next_click_id: no element of a later document has a clickId below it.
        touched_at: `time.monotonic()` of the last input.
    """

    tab: Tab
    tab_id: int
    next_click_id: int = 1
    touched_at: float = 0.0
    window_id: int | None = None
    _line: CDPSession | None = None

    async def attached(self) -> CDPSession:
        """Return the line for mouse and keyboard, opened when it is first asked for.

        Raises:
            CdpUnavailable, CdpPermissionDenied: The browser does not give one.
            PageCrashed: The page is gone.
        """
        if self._line is None:
            opening = self.tab.page.context.new_cdp_session(self.tab.page)
            try:
                self._line = await self.tab.perform(_opened(opening), seconds=ATTACH_SECONDS)
            except TimeoutError:
                raise CdpUnavailable("The browser did not attach to the tab in time.") from None
        return self._line

    def detach(self) -> None:
        """Forget the line; the next input asks for another one."""
        self._line = None

    async def wait_for_navigation(self, until: float) -> None:
        """Wait for the document that the last input asked for, if it did (`time.monotonic()`).

        Raises:
            NavigationTimeout, PageCrashed: as `next_document`.
        """
        if self.tab.is_leaving or time.monotonic() < self.touched_at + GRACE_SECONDS:
            await wait_for_next_document(self.tab, until)

    async def close(self) -> None:
        """Forget the line; it ends with its page."""
        self.detach()


async def _opened(opening: object) -> CDPSession:
    try:
        return await opening  # type: ignore[misc,no-any-return]
    except browser_errors() as error:
        told = str(error).lower()
        if "not allowed" in told or "permission" in told:
            raise CdpPermissionDenied("The browser lets nobody attach to this tab.") from None
        raise CdpUnavailable("The browser does not attach to the tab.") from None


def current_task_tab(session: BrowserSession | None) -> TaskTab | None:
    """Return the session's task tab, if it has one that lives."""
    kept = None if session is None else session.resources.get(TASK_TAB)
    return kept if isinstance(kept, TaskTab) and kept.tab.is_alive else None


@contextlib.asynccontextmanager
async def task_tab(
    ctx: ToolContext, tab_id: int, *, settled: bool = False
) -> AsyncIterator[TaskTab]:
    """Lease the task's tab; `settled`, with the document that the last input asked for.

    Raises:
        InvalidTaskTab: The number is another tab's.
        TaskTabClosed: There is no such tab any more, or it is lost meanwhile.
        OwnPage: It shows a page of this product, in a frame of it perhaps.
        AddressNotAllowed: It shows what this caller may not look at.
        NavigationTimeout: That document does not arrive.
    """
    session = ctx.browser
    kept = None if session is None else session.resources.get(TASK_TAB)
    if isinstance(kept, TaskTab) and kept.tab_id != tab_id:
        raise InvalidTaskTab(
            f"The tab {tab_id} is not this task's.", details={"taskTabId": kept.tab_id}
        )
    task = current_task_tab(session)
    if session is None or task is None:
        raise TaskTabClosed("The task has no tab any more.", details={"tabId": tab_id})
    with lost_page_as_closed_tab(task):
        # Another run of the same task goes on with it.
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
    """Tell a page that is lost inside as the task's tab that was closed."""
    try:
        yield
    except PageCrashed as lost:
        raise TaskTabClosed(
            "The task's tab was closed, or its page died.",
            details={"tabId": task.tab_id, **lost.details},
        ) from None


def page_notices(task: TaskTab, ctx: ToolContext) -> list[str]:
    """Return warnings of what the page did by itself since somebody was told of it last."""
    return [ctx.mask(notice) for notice in task.tab.take_notices()]


def check_frames(tab: Tab) -> None:
    """Make sure that the page shows no page of this product inside: a hand would reach it there.

    Raises:
        OwnPage: It does.
    """
    for frame in tab.page.frames[1:]:
        refuse_own_page(frame.url)


def check_page_address(url: str, ctx: ToolContext) -> None:
    """Make sure that agents act on this page, and this caller may look at it.

    Raises:
        OwnPage, AddressNotAllowed: They do not, or it may not.
    """
    refuse_own_page(url)
    if ctx.trust != "local" and url.startswith(("http:", "https:")):
        check_address(url, ctx.trust)
