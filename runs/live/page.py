"""The live page of one task, on the worker that has it: sends pictures to the viewers and, while a
person has taken the page over, applies that person's input. Used on the loop thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db import Error

from decisions.foundation.infra.cancellation import cancel_and_wait
from decisions.foundation.infra.threads import in_thread
from decisions.identity.authority import lower_trust
from runners.browser.errors import browser_errors
from runners.browser.live.dialogs import OpenDialogs
from runners.browser.live.person_input import send_input
from runners.browser.live.screencast import Screencast, ScreencastFrame
from runners.errors import ToolFailed
from runs.live.activity import PersonActivity, record_activity
from runs.live.channel import VIEWER_TIMEOUT_S
from runs.live.open_pages import get_page_session
from runs.live.viewer_queue import ViewerSender
from runs.models import Task

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from runners.browser.session.tab import Tab

POLL_S = 0.5
RECORD_S = 5.0  # interval at which a person's activity is recorded
STALE_S = 2.0  # input that waited longer than this for the agent's call to end is dropped
DETACH_S = 2.0  # a page that does not answer within this time is left as it is
MAX_WAITING_INPUTS = 64  # messages
log = logging.getLogger(__name__)


class LivePage:
    """A task's page from its first viewer until the last viewer leaves or the page is closed.

    Args:
        publish: sends a message to the viewers; raises nothing.
    """

    def __init__(self, task_id: str, publish: Callable[[Mapping[str, Any]], Awaitable[None]]):
        self.task_id = task_id
        self._out = ViewerSender(publish)
        self._dialogs = OpenDialogs(self._out.add_notice)
        self._inputs: asyncio.Queue[tuple[float, Mapping[str, Any], Sequence[Mapping[str, Any]]]]
        self._inputs = asyncio.Queue(MAX_WAITING_INPUTS)
        self._tab: Tab | None = None
        self._cdp: CDPSession | None = None
        self._screencast: Screencast | None = None
        self._is_taken_over = False
        self._last_actor = ""
        self._activity: dict[str, PersonActivity] = {}
        self._recorded_at = self._viewed_at = time.monotonic()
        self._loops = [asyncio.create_task(loop) for loop in (self._follow(), self._apply())]

    @property
    def has_ended(self) -> bool:
        """Whether there is no viewer or no page any more."""
        return any(loop.done() for loop in self._loops)

    async def handle(self, message: Mapping[str, Any]) -> None:
        """Handle a viewer's message: an announcement, or input."""
        self._viewed_at = time.monotonic()
        if message["kind"] == "watch":
            self._send_state()
            if message.get("isNew") and self._screencast is not None:
                self._screencast.resend_latest()
                self._dialogs.resend()
            return
        answers = [event for event in message["events"] if event["kind"] == "dialog"]
        others = [event for event in message["events"] if event["kind"] != "dialog"]
        for event in answers:  # at once: an open dialog blocks all other input
            if self._is_taken_over:
                self._activity_of(message["by"]).counts["dialogs"] += 1
                self._dialogs.answer(event)
        if others and not self._inputs.full():
            self._inputs.put_nowait((time.monotonic(), message, others))

    async def close(self) -> None:
        """Detach from the page and record what was done on it."""
        for error in await cancel_and_wait(self._loops):
            if error is not None:
                log.error("the live page of %s failed", self.task_id, exc_info=error)
        await self._detach()
        await self._record_activity()
        self._out.add_notice({"type": "live_state", "page": False})
        await self._out.close()

    # --- following the page -----------------------------------------------------------------------

    async def _follow(self) -> None:
        while time.monotonic() - self._viewed_at < VIEWER_TIMEOUT_S:
            session = get_page_session(self.task_id)
            if session is None:
                return
            tab = session.live_tab()
            if tab is not self._tab:
                await self._detach()
                if tab is not None:
                    await self._attach(tab)
            try:
                await self._check_takeover()
            except Error as error:
                log.warning("cannot read whether a person has taken over the page: %s", error)
            if time.monotonic() - self._recorded_at >= RECORD_S:
                await self._record_activity()
            await asyncio.sleep(POLL_S)

    async def _check_takeover(self) -> None:
        is_taken_over = await in_thread(Task.objects.is_taken_over, self.task_id)
        if is_taken_over != self._is_taken_over:
            self._is_taken_over = is_taken_over
            if self._tab is not None:
                self._tab.watch.set_dialog_handler(self._dialogs.open if is_taken_over else None)
            if not is_taken_over:
                self._dialogs.dismiss_all()
                await self._record_activity()
            self._send_state()

    async def _attach(self, tab: Tab) -> None:
        try:
            cdp = await tab.page.context.new_cdp_session(tab.page)
        except browser_errors():
            return  # the page was closed meanwhile; the next poll finds that
        cdp.on("Page.frameNavigated", self._on_navigated)
        cdp.on("Page.navigatedWithinDocument", lambda _: self._send_state())
        cdp.on("Page.windowOpen", self._on_window_open)
        self._tab, self._cdp = tab, cdp
        self._screencast = Screencast(cdp, self._send_picture)
        self._screencast.start()
        if self._is_taken_over:
            tab.watch.set_dialog_handler(self._dialogs.open)
        self._send_state()

    async def _detach(self) -> None:
        tab, cdp, screencast = self._tab, self._cdp, self._screencast
        self._tab = self._cdp = self._screencast = None
        self._dialogs.dismiss_all()
        if tab is not None:
            tab.watch.set_dialog_handler(None)
        if screencast is not None:
            await screencast.stop()
        if cdp is not None:
            with contextlib.suppress(*browser_errors()):
                async with asyncio.timeout(DETACH_S):
                    await cdp.detach()
        if tab is not None:
            self._send_state()

    # --- messages to the viewers ------------------------------------------------------------------

    def _send_picture(self, picture: ScreencastFrame) -> None:
        self._out.set_picture(
            {
                "type": "live_frame",
                "data": picture.data,
                "width": picture.width,
                "height": picture.height,
            }
        )

    def _send_state(self) -> None:
        tab = self._tab
        url = tab.page.url if tab is not None and tab.is_alive else None
        state = {"type": "live_state", "page": url is not None, "mayAct": self._is_taken_over}
        self._out.add_notice(state if url is None else {**state, "url": url[:2000]})

    def _on_navigated(self, event: Mapping[str, Any]) -> None:
        frame = event["frame"]
        if frame.get("parentId") is not None:
            return
        if self._is_taken_over and self._last_actor:
            self._activity_of(self._last_actor).add_navigation(str(frame["url"]))
        self._send_state()

    def _on_window_open(self, event: Mapping[str, Any]) -> None:
        if self._is_taken_over:  # runners.browser.session.crashes closes the window at once
            self._out.add_notice({"type": "live_tab", "url": str(event.get("url", ""))[:2000]})

    # --- input from a person ----------------------------------------------------------------------

    async def _apply(self) -> None:
        while True:
            received_at, message, events = await self._inputs.get()
            session = get_page_session(self.task_id)
            if session is None:
                continue
            async with session.takeover_tab() as tab:
                if tab is None or tab is not self._tab or self._cdp is None:
                    continue
                if time.monotonic() - received_at > STALE_S:
                    continue
                # Read it here, where no call of the agent can start: a person who has given the
                # page back meanwhile must not act any more.
                if not await self._is_still_taken_over():
                    continue
                self._last_actor = by = str(message["by"])
                self._activity_of(by).count(events)
                trust = lower_trust(session.trust, message.get("trust"))
                try:
                    await send_input(tab, self._cdp, events, trust)
                except ToolFailed as failed:
                    error = {"errorCode": failed.code, "message": failed.message}
                    self._out.add_notice({"type": "live_problem", "error": error})
                except browser_errors():
                    continue  # the page is gone; `_follow` finds that

    async def _is_still_taken_over(self) -> bool:
        try:
            return await in_thread(Task.objects.is_taken_over, self.task_id)
        except Error as error:
            log.warning("input is dropped: cannot read whether the page is taken over: %s", error)
            return False

    def _activity_of(self, by: str) -> PersonActivity:
        return self._activity.setdefault(by, PersonActivity())

    async def _record_activity(self) -> None:
        self._recorded_at = time.monotonic()
        for by in list(self._activity):
            activity = self._activity.pop(by)  # what is done from here on is recorded next time
            try:
                if activity:
                    await in_thread(record_activity, self.task_id, by, activity)
            except Error as error:
                log.warning("a person's activity cannot be recorded yet: %s", error)
                self._activity_of(by).prepend(activity)
                return
