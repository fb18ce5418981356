"""One task's page that somebody looks at, on the worker that has it: pictures go out, and while a
person has the page, what they do comes in. Used on the loop thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db import Error

from decisions.infra.cancellation import ended
from decisions.infra.threads import in_thread
from runners.browser.errors import browser_errors
from runners.browser.live.dialogs import Questions
from runners.browser.live.person_input import act
from runners.browser.live.screencast import Picture, Screencast
from runners.errors import ToolFailed
from runs.live.activity import PersonActivity, record_activity
from runs.live.channel import GONE_S
from runs.live.open_pages import get_page_session
from runs.live.viewer_queue import ViewerSender
from runs.models import Task

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from runners.browser.session.tab import Tab

TEND_S = 0.5
TELL_S = 5.0  # what a person did is told this often
STALE_S = 2.0  # what was done while the agent's last call went on is not done afterwards
LEAVE_S = 2.0  # a page that answers nothing any more is left as it is
WAITING = 64  # messages of input
log = logging.getLogger(__name__)


class LivePage:
    """From the first who looks until the last one is gone, or the page is.

    Args:
        publish: sends a message to those who look.
    """

    def __init__(self, task_id: str, publish: Callable[[Mapping[str, Any]], Awaitable[None]]):
        self.task_id = task_id
        self._out = ViewerSender(publish)
        self._questions = Questions(self._out.add_notice)
        self._inbox: asyncio.Queue[tuple[float, str, Sequence[Mapping[str, Any]]]]
        self._inbox = asyncio.Queue(WAITING)
        self._tab: Tab | None = None
        self._line: CDPSession | None = None
        self._cast: Screencast | None = None
        self._is_taken = False
        self._by = ""  # who acted last
        self._done: dict[str, PersonActivity] = {}
        self._told_at = self._seen_at = time.monotonic()
        self._work = [asyncio.create_task(one) for one in (self._tend(), self._act())]

    @property
    def is_over(self) -> bool:
        """Whether nobody looks any more, or there is nothing to see."""
        return any(one.done() for one in self._work)

    async def take(self, message: Mapping[str, Any]) -> None:
        """Hear somebody who looks."""
        self._seen_at = time.monotonic()
        if message["kind"] == "watch":
            self._tell_state()
            if message.get("isNew") and self._cast is not None:
                self._cast.again()
                self._questions.again()
            return
        answers = [event for event in message["events"] if event["kind"] == "dialog"]
        others = [event for event in message["events"] if event["kind"] != "dialog"]
        for event in answers:  # the page takes nothing else before
            if self._is_taken:
                self._doings_of(message["by"]).counts["dialogs"] += 1
                self._questions.answer(event)
        if others and not self._inbox.full():
            self._inbox.put_nowait((time.monotonic(), message["by"], others))

    async def close(self) -> None:
        """Let go of the page, and tell what was done on it."""
        for error in await ended(self._work):
            if error is not None:
                log.error("the live page of %s ended over a defect", self.task_id, exc_info=error)
        await self._detach()
        await self._tell_doings()
        self._out.add_notice({"type": "live_state", "page": False})
        await self._out.close()

    # --- looking after it -------------------------------------------------------------------------

    async def _tend(self) -> None:
        while time.monotonic() - self._seen_at < GONE_S:
            session = get_page_session(self.task_id)
            if session is None:
                return
            tab = session.live_tab()
            if tab is not self._tab:
                await self._detach()
                if tab is not None:
                    await self._attach(tab)
            try:
                await self._look_who_has_it()
            except Error as error:
                log.warning("who has a page is not known now: %s", error)
            if time.monotonic() - self._told_at >= TELL_S:
                await self._tell_doings()
            await asyncio.sleep(TEND_S)

    async def _look_who_has_it(self) -> None:
        is_taken = await in_thread(Task.objects.is_taken_over, self.task_id)
        if is_taken != self._is_taken:
            self._is_taken = is_taken
            if self._tab is not None:
                self._tab.set_dialog_handler(self._questions.ask if is_taken else None)
            if not is_taken:
                self._questions.dismiss_all()
                await self._tell_doings()
            self._tell_state()

    async def _attach(self, tab: Tab) -> None:
        try:
            line = await tab.page.context.new_cdp_session(tab.page)
        except browser_errors():
            return  # it closed meanwhile; the next look sees
        line.on("Page.frameNavigated", self._navigated)
        line.on("Page.navigatedWithinDocument", lambda _: self._tell_state())
        line.on("Page.windowOpen", self._window_wanted)
        self._tab, self._line, self._cast = tab, line, Screencast(line, self._show)
        self._cast.start()
        if self._is_taken:
            tab.set_dialog_handler(self._questions.ask)
        self._tell_state()

    async def _detach(self) -> None:
        tab, line, cast = self._tab, self._line, self._cast
        self._tab = self._line = self._cast = None
        self._questions.dismiss_all()
        if tab is not None:
            tab.set_dialog_handler(None)
        if cast is not None:
            await cast.stop()
        if line is not None:
            with contextlib.suppress(*browser_errors()):
                async with asyncio.timeout(LEAVE_S):
                    await line.detach()
        if tab is not None:
            self._tell_state()

    # --- what goes out ----------------------------------------------------------------------------

    def _show(self, picture: Picture) -> None:
        self._out.set_picture(
            {
                "type": "live_frame",
                "data": picture.data,
                "width": picture.width,
                "height": picture.height,
            }
        )

    def _tell_state(self) -> None:
        tab = self._tab
        url = tab.page.url if tab is not None and tab.is_alive else None
        told = {"type": "live_state", "page": url is not None, "mayAct": self._is_taken}
        self._out.add_notice(told if url is None else {**told, "url": url[:2000]})

    def _navigated(self, told: Mapping[str, Any]) -> None:
        frame = told["frame"]
        if frame.get("parentId") is not None:
            return
        if self._is_taken and self._by:
            self._doings_of(self._by).went(str(frame["url"]))
        self._tell_state()

    def _window_wanted(self, told: Mapping[str, Any]) -> None:
        if self._is_taken:  # it is closed at once (runners.browser.session.crashes)
            self._out.add_notice({"type": "live_tab", "url": str(told.get("url", ""))[:2000]})

    # --- what comes in ----------------------------------------------------------------------------

    async def _act(self) -> None:
        while True:
            at, by, events = await self._inbox.get()
            session = get_page_session(self.task_id)
            if session is None:
                continue
            async with session.takeover_tab() as tab:
                if tab is None or tab is not self._tab or self._line is None:
                    continue
                if time.monotonic() - at > STALE_S:
                    continue
                # Asked while nothing of the agent's can begin: whoever gave the page back meanwhile
                # acts no more.
                if not await self._is_still_taken():
                    continue
                self._by = by
                self._doings_of(by).note(events)
                try:
                    await act(tab, self._line, events, session.trust)
                except ToolFailed as failed:
                    told = {"errorCode": failed.code, "message": failed.message}
                    self._out.add_notice({"type": "live_problem", "error": told})
                except browser_errors():
                    continue  # the page is gone; `_tend` sees that

    async def _is_still_taken(self) -> bool:
        try:
            return await in_thread(Task.objects.is_taken_over, self.task_id)
        except Error as error:
            log.warning("nothing is done on a page while nobody knows who has it: %s", error)
            return False

    def _doings_of(self, by: str) -> PersonActivity:
        return self._done.setdefault(by, PersonActivity())

    async def _tell_doings(self) -> None:
        self._told_at = time.monotonic()
        for by in list(self._done):
            done = self._done.pop(by)  # what is done meanwhile is told the next time
            try:
                if done:
                    await in_thread(record_activity, self.task_id, by, done)
            except Error as error:  # this too
                log.warning("what a person did is not told yet: %s", error)
                self._doings_of(by).add(done)
                return
