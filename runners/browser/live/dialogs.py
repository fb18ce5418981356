"""The dialogs of a page that a person has: that person answers them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from runners.browser.errors import browser_errors

if TYPE_CHECKING:
    from playwright.async_api import Dialog

PATIENCE_SECONDS = 120.0  # then it is answered with no
_numbers = count(1)


class Questions:
    """Those that are open now; a page asks one after the other.

    Args:
        say: tells those who look, of a dialog and of there being none.
    """

    def __init__(self, say: Callable[[Mapping[str, Any]], None]) -> None:
        self._say = say
        self._open: dict[int, Dialog] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._chores: set[asyncio.Task[None]] = set()

    def ask(self, dialog: Dialog) -> None:
        """Tell those who look, and wait for one of them."""
        number = next(_numbers)
        self._open[number] = dialog
        loop = asyncio.get_running_loop()
        none = {"dialog": number, "accept": False}
        self._timers[number] = loop.call_later(PATIENCE_SECONDS, lambda: self.answer(none))
        self._tell(number, dialog)

    def again(self) -> None:
        """Tell of what is open once more."""
        for number, dialog in self._open.items():
            self._tell(number, dialog)

    def answer(self, told: Mapping[str, Any]) -> None:
        """Answer one: {dialog, accept, text?}; one that is answered already stays so."""
        dialog = self._open.pop(told["dialog"], None)
        if dialog is None:
            return
        self._timers.pop(told["dialog"]).cancel()
        self._say({"type": "live_dialog", "dialog": None})
        task = asyncio.ensure_future(_answered(dialog, told["accept"], told.get("text")))
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    def dismiss_all(self) -> None:
        """Answer what is open with no."""
        for number in list(self._open):
            self.answer({"dialog": number, "accept": False})

    def _tell(self, number: int, dialog: Dialog) -> None:
        asked = {
            "number": number,
            "kind": dialog.type,
            "message": dialog.message[:1000],
            "default": dialog.default_value[:1000],
        }
        self._say({"type": "live_dialog", "dialog": asked})


async def _answered(dialog: Dialog, accept: bool, text: str | None) -> None:
    with contextlib.suppress(*browser_errors()):  # its page is gone
        if not accept:
            await dialog.dismiss()
        elif text is None:
            await dialog.accept()
        else:
            await dialog.accept(text)
