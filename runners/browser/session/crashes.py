"""What goes wrong with a page while somebody waits: it crashes, closes or floods."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from runners import metrics
from runners.browser.errors import browser_errors, browser_lost, too_many
from runners.errors import ToolFailed

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Page

    DialogHandler = Callable[[Dialog], None]

Answer = TypeVar("Answer")

MAX_DIALOGS = 20
MAX_POPUPS = 10
MAX_NOTICES = 10
GLANCE_SECONDS = 1.0


class PageWatch:
    """Watches one page: dismisses dialogs, closes popups, and ends waits when it is lost.

    Attributes:
        dialogs: what the dialogs said that were dismissed since `count_anew`.
        answerer: whoever is asked the page's dialogs instead: a person.
    """

    def __init__(self, page: Page) -> None:
        self._failure: asyncio.Future[ToolFailed] = asyncio.get_running_loop().create_future()
        self.dialogs: list[str] = []
        self.answerer: DialogHandler | None = None
        self._dialogs = 0
        self._popups = 0
        self._chores: set[asyncio.Task[None]] = set()
        self._notices: list[str] = []
        page.on("dialog", self._on_dialog)
        page.on("popup", self._on_popup)
        page.on("crash", self._on_crash)
        page.on("close", lambda _: self.fail(browser_lost()))

    @property
    def is_lost(self) -> bool:
        """Whether the page is lost: every wait for it fails from now on."""
        return self._failure.done()

    def fail(self, failure: ToolFailed) -> None:
        """Give the page up; whoever waits for it gets this failure."""
        if not self._failure.done():
            self._failure.set_result(failure)

    def reset_counts(self) -> None:
        """Forget the dialogs and popups so far: each lease has its own count."""
        self.dialogs = []
        self._dialogs = self._popups = 0

    def note(self, notice: str) -> None:
        """Keep a sentence for whoever asks next what the page did by itself."""
        if len(self._notices) < MAX_NOTICES:
            self._notices.append(notice)

    def take_notices(self) -> list[str]:
        """Return what the page did by itself since this was asked last: it asked, opened a window,
        led to no page.
        """
        taken, self._notices = self._notices, []
        return taken

    async def watch(
        self, work: Coroutine[Any, Any, Answer], seconds_left: Callable[[], float]
    ) -> Answer:
        """Wait for the work, for trouble or for the end of the time, whatever comes first.

        Raises:
            TimeoutError: `seconds_left()`, asked every second, came to 0; the work is cancelled.
            ToolFailed: The page is lost.
        """
        task = asyncio.create_task(work)
        waited: set[asyncio.Future[Any]] = {task, self._failure}
        try:
            while not (task.done() or self._failure.done()):
                left = seconds_left()
                if left <= 0:
                    raise TimeoutError
                await asyncio.wait(
                    waited,
                    timeout=min(left, GLANCE_SECONDS),
                    return_when=asyncio.FIRST_COMPLETED,
                )
            if self._failure.done():
                raise self._failure.result()
            return task.result()
        finally:
            if not task.done():
                task.cancel()
            task.add_done_callback(_note_end)

    def do(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something beside, for whose outcome nobody waits."""

        async def chore() -> None:
            with contextlib.suppress(ToolFailed, *browser_errors()):
                await work

        task = asyncio.create_task(chore())
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    def _on_crash(self, _: Page) -> None:
        metrics.browser_crashed("page")
        self.fail(browser_lost())

    def _on_dialog(self, dialog: Dialog) -> None:
        self._dialogs += 1
        if self._dialogs > MAX_DIALOGS:
            # It stays open and so stops the page's script until the page is closed.
            self.fail(too_many("dialogs", MAX_DIALOGS))
            return
        if dialog.type != "beforeunload" and self.answerer is not None:
            self.answerer(dialog)
            return
        if dialog.type != "beforeunload":
            self.dialogs.append(dialog.message[:200])
            self.note(dismissed_dialog_notice(dialog.message[:200]))
        # Dismissing "leave this page?" would keep the tab on it.
        self.do(dialog.accept() if dialog.type == "beforeunload" else dialog.dismiss())

    def _on_popup(self, popup: Page) -> None:
        self._popups += 1
        if self._popups > MAX_POPUPS:
            self.fail(too_many("popups", MAX_POPUPS))
        popup.on("popup", self._on_popup)
        popup.on("dialog", self._on_dialog)
        self.do(popup.close())


def dismissed_dialog_notice(asked: str) -> str:
    """Return what is said of a question that the page asked in a dialog."""
    return f"The page asked “{asked}”, which was answered with no."


def within(seconds: float) -> Callable[[], float]:
    """Return a countdown of so many seconds from now."""
    end = asyncio.get_running_loop().time() + seconds
    return lambda: end - asyncio.get_running_loop().time()


def _note_end(task: asyncio.Future[Any]) -> None:
    """Take note of how a task ended that nobody waits for any more."""
    if not task.cancelled():
        task.exception()
