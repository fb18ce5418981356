"""The dialogs of a page that a person has taken over: the person answers them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from runners.browser.errors import browser_errors

if TYPE_CHECKING:
    from playwright.async_api import Dialog

TIMEOUT_SECONDS = 120.0  # an unanswered dialog is then dismissed
_numbers = count(1)


class OpenDialogs:
    """The open dialogs of a page; to be used on the loop thread.

    Args:
        send: sends a `live_dialog` message to the viewers: a dialog, or null when it was answered.
    """

    def __init__(self, send: Callable[[Mapping[str, Any]], None]) -> None:
        self._send = send
        self._open: dict[int, Dialog] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, dialog: Dialog) -> None:
        """Send a dialog to the viewers and wait for an answer."""
        number = next(_numbers)
        self._open[number] = dialog
        loop = asyncio.get_running_loop()
        dismissal = {"dialog": number, "accept": False}
        self._timers[number] = loop.call_later(TIMEOUT_SECONDS, lambda: self.answer(dismissal))
        self._send_dialog(number, dialog)

    def resend(self) -> None:
        """Send the open dialogs again, for a new viewer."""
        for number, dialog in self._open.items():
            self._send_dialog(number, dialog)

    def answer(self, event: Mapping[str, Any]) -> None:
        """Answer a dialog: {dialog, accept, text?}. Ignored if it was answered before."""
        dialog = self._open.pop(event["dialog"], None)
        if dialog is None:
            return
        self._timers.pop(event["dialog"]).cancel()
        self._send({"type": "live_dialog", "dialog": None})
        task = asyncio.ensure_future(_answer(dialog, event["accept"], event.get("text")))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def dismiss_all(self) -> None:
        """Dismiss all open dialogs."""
        for number in list(self._open):
            self.answer({"dialog": number, "accept": False})

    def _send_dialog(self, number: int, dialog: Dialog) -> None:
        message = {
            "number": number,
            "kind": dialog.type,
            "message": dialog.message[:1000],
            "default": dialog.default_value[:1000],
        }
        self._send({"type": "live_dialog", "dialog": message})


async def _answer(dialog: Dialog, accept: bool, text: str | None) -> None:
    with contextlib.suppress(*browser_errors()):  # the page is gone
        if not accept:
            await dialog.dismiss()
        elif text is None:
            await dialog.accept()
        else:
            await dialog.accept(text)
