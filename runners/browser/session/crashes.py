"""Watch a page for crashes, dialogs and popups while a caller waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from runners import metrics
from runners.browser.errors import browser_errors, browser_lost, flood_failure
from runners.errors import ToolFailed

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Page

    DialogHandler = Callable[[Dialog], None]
    PopupHandler = Callable[[Page], None]

Result = TypeVar("Result")

MAX_DIALOGS = 20
MAX_POPUPS = 10
MAX_NOTICES = 10
CHECK_SECONDS = 1.0
DIALOG_SECONDS = 10.0  # how long an answer waits for its dialog


@dataclass(frozen=True, slots=True)
class DialogAnswer:
    """An answer to one question of a page; `text` is for a prompt, else its default is kept."""

    accept: bool
    text: str | None = None
    given_at: float = field(default_factory=time.monotonic)

    def is_due(self) -> bool:
        """Return whether it was given recently."""
        return time.monotonic() < self.given_at + DIALOG_SECONDS


class PageWatch:
    """Watches one page: answers dialogs, closes popups, and ends waits when it is lost.

    Attributes:
        dialogs: a sentence for each dialog since `reset_counts`.
        dialog_handler: receives the page's dialogs instead, while a person has taken over the page.
        popup_handler: receives the windows that the page opens instead, and those that they open
            until `hand_over`, else they are closed; not while a person has taken over the page, who
            sees this page only.
    """

    def __init__(self, page: Page) -> None:
        self._failure: asyncio.Future[ToolFailed] = asyncio.get_running_loop().create_future()
        self.dialogs: list[str] = []
        self.dialog_handler: DialogHandler | None = None
        self.popup_handler: PopupHandler | None = None
        self._dialog_answer: DialogAnswer | None = None
        self._dialogs = 0
        self._popups = 0
        self._background: set[asyncio.Task[None]] = set()
        self._notices: list[str] = []
        page.on("dialog", self._on_dialog)
        page.on("popup", self._on_popup)
        page.on("crash", self._on_crash)
        page.on("close", lambda _: self.fail(browser_lost()))

    @property
    def keeps_popups(self) -> bool:
        """Whether windows that the page opens stay open."""
        return self.popup_handler is not None and self.dialog_handler is None

    @property
    def is_lost(self) -> bool:
        """Whether the page is lost: every wait for it fails."""
        return self._failure.done()

    def fail(self, failure: ToolFailed) -> None:
        """Declare the page lost: every wait for it raises this failure."""
        if not self._failure.done():
            self._failure.set_result(failure)

    def hand_over(self, popup: Page) -> None:
        """Handle the windows that a kept popup opens no longer: its own tab does."""
        popup.remove_listener("popup", self._on_popup)

    def set_dialog_handler(self, handler: DialogHandler | None) -> None:
        """Set the handler of the page's dialogs; None: they are dismissed."""
        self.reset_counts()
        self.dialog_handler = handler

    def reset_counts(self) -> None:
        """Reset the dialogs and popups; the limits apply per lease."""
        self.dialogs = []
        self._dialogs = self._popups = 0

    def answer_next_dialog(self, answer: DialogAnswer | None) -> None:
        """Set the answer to the next question of this document, if it comes soon; None: dismiss."""
        self._dialog_answer = answer

    def add_notice(self, notice: str) -> None:
        """Add a sentence about something the page did by itself, for the next `take_notices`."""
        if len(self._notices) < MAX_NOTICES:
            self._notices.append(notice)

    def withdraw_notice(self, notice: str) -> None:
        """Remove a notice that has proved wrong, if it was not taken yet."""
        if notice in self._notices:
            self._notices.remove(notice)

    def take_notices(self) -> list[str]:
        """Return what the page did by itself since the last call, one sentence each.

        For example: it opened a dialog or a window, or a navigation returned no page.
        """
        taken, self._notices = self._notices, []
        return taken

    async def wait_for(
        self,
        work: Coroutine[Any, Any, Result],
        seconds_left: Callable[[], float],
        *failures: asyncio.Future[ToolFailed],
    ) -> Result:
        """Wait for the work, until the page is lost, another of the failures comes or the time is
        up.

        Raises:
            TimeoutError: `seconds_left()`, called every second, returned 0; the work is cancelled.
            ToolFailed: The page is lost, or the failure that came.
        """
        task = asyncio.create_task(work)
        waited: set[asyncio.Future[Any]] = {task, self._failure, *failures}
        try:
            while not any(future.done() for future in waited):
                left = seconds_left()
                if left <= 0:
                    raise TimeoutError
                await asyncio.wait(
                    waited,
                    timeout=min(left, CHECK_SECONDS),
                    return_when=asyncio.FIRST_COMPLETED,
                )
            for failure in (self._failure, *failures):
                if failure.done():
                    raise failure.result()
            return task.result()
        finally:
            if not task.done():
                task.cancel()
            task.add_done_callback(_retrieve_exception)

    def run_in_background(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start work whose result is not needed; its browser errors are ignored."""

        async def ignoring_errors() -> None:
            with contextlib.suppress(ToolFailed, *browser_errors()):
                await work

        task = asyncio.create_task(ignoring_errors())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _on_crash(self, _: Page) -> None:
        metrics.browser_crashed("page")
        self.fail(browser_lost())

    def _on_dialog(self, dialog: Dialog) -> None:
        self._dialogs += 1
        if self._dialogs > MAX_DIALOGS:
            # The open dialog blocks the page's script until the page is closed.
            self.fail(flood_failure("dialogs", MAX_DIALOGS))
            return
        if dialog.type == "beforeunload":  # dismissing it would prevent the navigation
            self.run_in_background(dialog.accept())
        elif self.dialog_handler is not None:
            self.dialog_handler(dialog)
        else:
            self._answer_dialog(dialog)

    def _answer_dialog(self, dialog: Dialog) -> None:
        answer: DialogAnswer | None = None
        if dialog.type != "alert":  # an alert asks nothing
            answer, self._dialog_answer = self._dialog_answer, None
        if answer is not None and answer.accept and answer.is_due():
            text = dialog.default_value if answer.text is None else answer.text
            self._report_dialog(dialog, "accepted")
            self.run_in_background(dialog.accept(text))
        else:
            self._report_dialog(dialog, "dismissed")
            self.run_in_background(dialog.dismiss())

    def _report_dialog(self, dialog: Dialog, done: str) -> None:
        notice = dialog_notice(dialog.type, dialog.message[:200], done)
        self.dialogs.append(notice)
        self.add_notice(notice)

    def _on_popup(self, popup: Page) -> None:
        self._popups += 1
        if self._popups > MAX_POPUPS:
            self.fail(flood_failure("popups", MAX_POPUPS))
        elif self.popup_handler is not None and self.dialog_handler is None:
            popup.on("popup", self._on_popup)  # until `hand_over`
            self.popup_handler(popup)
            return
        popup.on("popup", self._on_popup)
        popup.on("dialog", self._on_dialog)
        self.run_in_background(popup.close())


def dialog_notice(kind: str, message: str, done: str) -> str:
    """Return the warning about a dialog that was `accepted` or `dismissed`."""
    if kind == "alert":
        return f"The page showed an alert: “{message}”."
    return f"The page asked “{message}” in a dialog, which was {done}."


def countdown(seconds: float) -> Callable[[], float]:
    """Return a function that returns the seconds left of this time, starting now."""
    end = asyncio.get_running_loop().time() + seconds
    return lambda: end - asyncio.get_running_loop().time()


def _retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Retrieve the exception of an abandoned task, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
