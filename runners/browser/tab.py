"""One tab of a session: opening addresses, calling the reader, watching for trouble."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from runners.browser.failures import (
    ContextLost,
    browser_errors,
    browser_is_gone,
    failure_of,
    is_context_lost,
    is_download,
    too_many,
)
from runners.errors import NavigationFailed, ToolFailed

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Dialog, Page, Response

Answer = TypeVar("Answer")

MAX_DIALOGS = 20
MAX_POPUPS = 10
GLANCE_SECONDS = 1.0
WORLD = "continuity"


class Tab:
    """A page that is leased to one caller at a time.

    A wait for the page ends at once with the page's trouble: its crash, its end, a flood of dialogs
    or popups.

    Attributes:
        requested_url: what it was last asked to open.
        used_at: `time.monotonic()` of its last lease.
        parsed_at: `time.monotonic()` when the document that was opened last was parsed, None
            before.
    """

    def __init__(self, page: Page, line: CDPSession, frame_id: str) -> None:
        self.page = page
        self.requested_url = ""
        self.used_at = time.monotonic()
        self.parsed_at: float | None = None
        self._line = line
        self._frame_id = frame_id
        self._trouble: asyncio.Future[ToolFailed] = asyncio.get_running_loop().create_future()
        self._is_dirty = False
        self._was_download = False
        self._dialogs = 0
        self._popups = 0
        self._chores: set[asyncio.Task[None]] = set()
        page.on("dialog", self._on_dialog)
        page.on("popup", self._on_popup)
        page.on("crash", lambda _: self._fail(browser_is_gone()))
        page.on("close", lambda _: self._fail(browser_is_gone()))
        page.on("download", lambda _: self._note_download())
        page.on("domcontentloaded", lambda _: self._note_parsed())

    @classmethod
    async def open(cls, context: BrowserContext) -> Tab:
        """Open a new page in the context; a caller that stops waiting leaves no page behind."""
        page = await context.new_page()
        try:
            line = await context.new_cdp_session(page)
            tree = await line.send("Page.getFrameTree")
        except BaseException:
            await asyncio.shield(page.close())
            raise
        return cls(page, line, tree["frameTree"]["frame"]["id"])

    @property
    def is_usable(self) -> bool:
        """Whether the tab can be leased again: alive, and at rest."""
        return not (self._is_dirty or self._trouble.done() or self.page.is_closed())

    def begin_lease(self) -> None:
        """Count dialogs and popups anew for the next caller."""
        self.used_at = time.monotonic()
        self._dialogs = self._popups = 0

    async def go(self, url: str, *, seconds: float) -> None:
        """Open an address and return as soon as its document begins to arrive.

        Raises:
            NavigationTimeout, NavigationFailed, PageCrashed, InvalidTarget: as the browser reports
            it.
            ToolFailed: details.reason is `download`, `too_many_dialogs` or `too_many_popups`.
        """
        self.requested_url = url
        self.parsed_at = None
        self._is_dirty = True
        self._was_download = False
        going = self.page.goto(url, wait_until="commit", timeout=max(1.0, seconds * 1000))
        try:
            await self._watch(going, _within(seconds + 1.0))
        except browser_errors() as error:
            # The browser may still be putting an error page of its own there: the tab stays dirty.
            raise (is_download(url) if self._was_download else failure_of(error, url)) from None

    async def status_of(self, url: str, *, seconds: float) -> int | None:
        """Open an address once more for its HTTP status: some answers give no page to ask."""
        statuses: list[int] = []

        def note(response: Response) -> None:
            if response.request.is_navigation_request():
                statuses.append(response.status)

        self.page.on("response", note)
        try:
            await self.go(url, seconds=seconds)
        except NavigationFailed:
            pass
        finally:
            self.page.remove_listener("response", note)
        return statuses[-1] if statuses else None

    async def evaluate(self, expression: str, seconds_left: Callable[[], float]) -> Any:
        """Evaluate in the reader's own world of the present document and await its promise.

        `seconds_left` is asked again while it waits, so that the end may come nearer when the page
        moves on.

        Raises:
            ContextLost: The page went on to another document meanwhile.
            TimeoutError: The page did not answer in time; its script may be hanging.
            ToolFailed: The page crashed, was closed or flooded its reader.
        """
        try:
            answer = await self._watch(self._evaluate(expression), seconds_left)
        except TimeoutError:
            raise
        except browser_errors() as error:
            if is_context_lost(error):
                raise ContextLost(str(error)) from None
            raise browser_is_gone() from None
        if "exceptionDetails" in answer:
            raise RuntimeError(f"page script: {_first_line(answer['exceptionDetails'])}")
        return answer["result"].get("value")

    async def _evaluate(self, expression: str) -> dict[str, Any]:
        world = await self._line.send(
            "Page.createIsolatedWorld", {"frameId": self._frame_id, "worldName": WORLD}
        )
        request = {
            "expression": expression,
            "contextId": world["executionContextId"],
            "awaitPromise": True,
            "returnByValue": True,
        }
        answer: dict[str, Any] = await self._line.send("Runtime.evaluate", request)
        return answer

    async def interrupt(self) -> None:
        """End the script that hangs in the page, if one does, so that the page can be read."""
        with contextlib.suppress(TimeoutError, *browser_errors()):
            await self._watch(self._line.send("Runtime.terminateExecution"), _within(2.0))

    async def screenshot(self, *, seconds: float) -> bytes:
        """Return the viewport as JPEG.

        Raises:
            TimeoutError: The page did not paint in time.
            PageCrashed: The page is gone.
        """
        shot = {"format": "jpeg", "quality": 60, "optimizeForSpeed": True}
        try:
            answer = await self._watch(
                self._line.send("Page.captureScreenshot", shot), _within(seconds)
            )
        except TimeoutError:
            raise
        except browser_errors():
            raise browser_is_gone() from None
        return base64.b64decode(answer["data"])

    async def stop_loading(self) -> bool:
        """Stop what the page still loads; say whether it obeyed and the tab can be used again."""
        try:
            await self._watch(self._line.send("Page.stopLoading"), _within(1.0))
            await self.evaluate("1", _within(1.0))
        except browser_errors():
            return False
        except (ContextLost, ToolFailed):
            return False
        self._is_dirty = False
        return True

    def forget_parsed(self) -> None:
        """Await another document: the page went on to one by itself."""
        self.parsed_at = None

    def settle(self) -> None:
        """Declare the navigation over: the tab may be leased again."""
        self._is_dirty = False

    async def close(self) -> None:
        """Close the page, whatever it is doing."""
        await self.page.close(run_before_unload=False)

    async def _watch(
        self, work: Coroutine[Any, Any, Answer], seconds_left: Callable[[], float]
    ) -> Answer:
        """Wait for the answer, the page's trouble or the end of the time, whatever comes first."""
        task = asyncio.create_task(work)
        waited: set[asyncio.Future[Any]] = {task, self._trouble}
        try:
            while not (task.done() or self._trouble.done()):
                left = seconds_left()
                if left <= 0:
                    raise TimeoutError
                await asyncio.wait(
                    waited,
                    timeout=min(left, GLANCE_SECONDS),
                    return_when=asyncio.FIRST_COMPLETED,
                )
            if self._trouble.done():
                raise self._trouble.result()
            return task.result()
        finally:
            if not task.done():
                task.cancel()
            task.add_done_callback(_note_end)

    def _fail(self, failure: ToolFailed) -> None:
        if not self._trouble.done():
            self._trouble.set_result(failure)

    def _note_parsed(self) -> None:
        self.parsed_at = time.monotonic()

    def _note_download(self) -> None:
        self._was_download = True

    def _on_dialog(self, dialog: Dialog) -> None:
        self._dialogs += 1
        if self._dialogs > MAX_DIALOGS:
            # It stays open and so stops the page's script until the page is closed.
            self._fail(too_many("dialogs", MAX_DIALOGS))
            return
        # Dismissing "leave this page?" would keep the tab on it.
        self._chore(dialog.accept() if dialog.type == "beforeunload" else dialog.dismiss())

    def _on_popup(self, popup: Page) -> None:
        self._popups += 1
        if self._popups > MAX_POPUPS:
            self._fail(too_many("popups", MAX_POPUPS))
        popup.on("popup", self._on_popup)
        popup.on("dialog", self._on_dialog)
        self._chore(popup.close())

    def _chore(self, work: Coroutine[Any, Any, None]) -> None:
        async def do() -> None:
            with contextlib.suppress(*browser_errors()):
                await work

        chore = asyncio.ensure_future(do())
        self._chores.add(chore)
        chore.add_done_callback(self._chores.discard)


def _within(seconds: float) -> Callable[[], float]:
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()


def _note_end(task: asyncio.Future[Any]) -> None:
    """Take note of how a task ended that nobody waits for any more."""
    if not task.cancelled():
        task.exception()


def _first_line(details: dict[str, Any]) -> str:
    text = details.get("exception", {}).get("description") or details.get("text") or ""
    return str(text).partition("\n")[0]
