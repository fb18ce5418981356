"""Real input through the browser's protocol: `Input.dispatchMouseEvent` and `dispatchKeyEvent`.

Messages of one press, and of a few keys, are sent one behind the other without waiting for each
answer; the browser takes them in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from runners.actions.errors import CdpLost
from runners.browser.action_support.keys import NAMED, Key, keyboard
from runners.browser.errors import browser_errors
from runners.browser.interaction.input_device import (
    DocumentCheck,
    is_typed,
    require_current_document,
)
from runners.browser.session.tab import Tab
from runners.errors import PageCrashed

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

Message = tuple[str, Mapping[str, Any]]
MOUSE, KEY = "Input.dispatchMouseEvent", "Input.dispatchKeyEvent"
INSERT = "Input.insertText"
NOTHING: Message = ("Input.setIgnoreInputEvents", {"ignore": False})  # says that the line is there
BURST = 6  # keys between two looks whether the page stays; the first is alone
CLOSING_SECONDS = 0.3  # between a line's end and the word that its page is gone


class NotDispatched(Exception):
    """The line was not there before the input began: nothing was done."""


@dataclass(frozen=True, slots=True)
class CdpInput:
    """A mouse and a keyboard at the end of a line to the page.

    Each deed raises NotDispatched where nothing of it was done, and CdpLost or PageCrashed, with
    details.effect unknown, where it may have been.
    """

    tab: Tab
    line: CDPSession

    async def press(self, x: float, y: float, stays: DocumentCheck) -> None:
        """Press the left button."""
        at = {"x": x, "y": y, "button": "left", "clickCount": 1}
        await self._try((MOUSE, {"type": "mouseMoved", "x": x, "y": y}))
        require_current_document(stays)
        await self._send(
            [
                (MOUSE, {"type": "mousePressed", "buttons": 1, **at}),
                (MOUSE, {"type": "mouseReleased", **at}),
            ]
        )

    async def write(self, text: str, stays: DocumentCheck) -> None:
        """Write a text: what a keyboard has by its keys, the rest as an input method commits it."""
        await self._try(NOTHING)
        begun = False
        pasted: list[Message] = [(INSERT, {"text": text})]
        for messages in _bursts(text) if is_typed(text) else [pasted]:
            require_current_document(stays, begun=begun)
            begun = True
            await self._send(messages)

    async def press_key(self, key: str, stays: DocumentCheck) -> None:
        """Press one key."""
        await self._try(NOTHING)
        require_current_document(stays)
        await self._send(list(_struck(NAMED[key])))

    async def _try(self, message: Message) -> None:
        """Say something that does nothing to the page's contents."""
        try:
            await self.line.send(message[0], dict(message[1]))
        except browser_errors() as error:
            await self._raise_if_closed()
            raise NotDispatched from error

    async def _send(self, messages: list[Message]) -> None:
        sending = (self.line.send(method, dict(params)) for method, params in messages)
        try:
            await asyncio.gather(*sending)
        except browser_errors():
            await self._raise_if_closed()
            raise CdpLost(
                "The line to the page was lost in the middle of the input.",
                details={"effect": "unknown"},
            ) from None

    async def _raise_if_closed(self) -> None:
        end = asyncio.get_running_loop().time() + CLOSING_SECONDS
        while asyncio.get_running_loop().time() < end:
            if not self.tab.is_alive:
                raise PageCrashed("The page was closed.", details={"effect": "unknown"})
            await asyncio.sleep(0.02)


def _struck(key: Key) -> Iterator[Message]:
    yield KEY, {"type": "keyDown" if "text" in key else "rawKeyDown", **key}
    yield KEY, {"type": "keyUp", **{name: key[name] for name in key if name != "text"}}


def _written(text: str) -> Iterator[list[Message]]:
    keys = keyboard()
    for is_key, run in groupby(text, lambda letter: letter in keys):
        if is_key:
            for letter in run:
                yield list(_struck(keys[letter]))
        else:
            yield [(INSERT, {"text": "".join(run)})]


def _bursts(text: str) -> Iterator[list[Message]]:
    """Return the messages of a text in groups; a space, which would press a button, begins one."""
    burst: list[Message] = []
    for at, messages in enumerate(_written(text)):
        is_full = at == 1 or len(burst) >= 2 * BURST or messages[0][1].get("text") == " "
        if burst and is_full:
            yield burst
            burst = []
        burst += messages
    yield burst
