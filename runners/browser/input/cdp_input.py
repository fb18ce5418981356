"""Real input through CDP: `Input.dispatchMouseEvent`, `Input.dispatchKeyEvent` and
`Input.dispatchDragEvent`.

The messages of a click, and of a few keys, are sent without waiting for each reply; the browser
processes them in order.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from runners.actions.errors import CdpLost
from runners.browser.errors import browser_errors, browser_lost
from runners.browser.input.checks import (
    OUTSIDE,
    DocumentCheck,
    PressMissed,
    require_current_document,
)
from runners.browser.input.keys import Key, key_of, keyboard
from runners.browser.input.press import PageKeys, PagePress
from runners.browser.session.tab import Tab
from runners.errors import PageCrashed

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

Message = tuple[str, Mapping[str, Any]]
MOUSE, KEY, DRAG = (f"Input.dispatch{kind}Event" for kind in ("Mouse", "Key", "Drag"))
INSERT = "Input.insertText"
# Without effect on the page; its reply shows that the CDP session works.
NO_OP: Message = ("Input.setIgnoreInputEvents", {"ignore": False})
# Answered by the page's own thread, after the events that it sent before: of a navigation that the
# last input started, too. The answer to the input itself can arrive earlier than these.
PAGE_THREAD: Message = ("Runtime.evaluate", {"expression": "0"})
MAX_TYPED_LENGTH = 200  # a longer text, or one with several lines, is inserted at once
BURST = 6  # keys between two document checks; the first key is sent alone
CLOSING_SECONDS = 0.3  # between the end of a CDP session and the event that its page closed


class NotDispatched(Exception):
    """The CDP session did not work before the input began: nothing was sent."""


@dataclass(slots=True)
class CdpInput:
    """A mouse and a keyboard that use a CDP session of the page, for the input of one call.

    Each method raises NavigatedAway, before it sends input, if the document is not current;
    NotDispatched if nothing was sent, by none of the methods; and CdpLost or PageCrashed, with
    details.effect unknown, if something may have been. Without the tab's own session, which is not
    replaced, the page is lost.
    """

    tab: Tab
    cdp: CDPSession
    _has_started: bool = False

    async def click(self, x: float, y: float, check: PagePress) -> None:
        """Click the left button at a point of the viewport, in CSS pixels.

        Raises:
            PressMissed: The intended element was not clicked.
        """
        await self.press(x, y, check)
        await self.release_button(x, y)

    async def press(self, x: float, y: float, check: PagePress) -> None:
        """Move the mouse to a point and press its left button on the intended element.

        A page can put something else under the mouse at any time, also a frame of another origin,
        whose document no check can see. So a press that the element has not received is released
        outside: without a release nothing is clicked.

        Raises:
            PressMissed: The element has not received it.
        """
        await self.move(x, y, check.is_current)
        if not await check.is_ready():
            raise PressMissed(has_pressed=False)
        await self.press_button(x, y, check.is_current)
        is_received = False
        try:
            is_received = await check.is_received()
        finally:
            if not is_received:
                await self.release_button(*OUTSIDE)
        if not is_received:
            raise PressMissed(has_pressed=True)

    async def type_text(self, text: str, check: PageKeys) -> None:
        """Replace the selection of the focused field: type the characters that a keyboard has;
        insert the others as an input method does.
        """
        await self._try(NO_OP)
        has_started = False
        inserted: list[Message] = [(INSERT, {"text": text})]
        for messages in _bursts(text) if _is_typed(text) else [inserted]:
            await check.require_focus(has_started=has_started)
            require_current_document(check.is_current, has_started=has_started)
            has_started = True
            await self._send(messages)

    async def press_key(self, key: str, check: PageKeys) -> None:
        """Press one key."""
        await self._try(NO_OP)
        await check.require_focus(has_started=False)
        require_current_document(check.is_current)
        await self._send(list(_key_messages(key_of(key))))

    async def move(self, x: float, y: float, is_current: DocumentCheck) -> None:
        """Move the mouse to a point of the viewport."""
        await self._await_page_events()
        require_current_document(is_current)
        await self._try((MOUSE, {"type": "mouseMoved", "x": x, "y": y}))
        await self._await_page_events()

    async def press_button(self, x: float, y: float, is_current: DocumentCheck) -> None:
        """Press the left button at a point where the mouse is."""
        require_current_document(is_current)
        at = {"x": x, "y": y, "button": "left", "clickCount": 1}
        await self._send([(MOUSE, {"type": "mousePressed", "buttons": 1, **at})])

    async def move_pressed(self, x: float, y: float) -> None:
        """Move the mouse while the left button is pressed."""
        at = {"x": x, "y": y, "button": "left", "buttons": 1}
        await self._send([(MOUSE, {"type": "mouseMoved", **at})])

    async def release_button(self, x: float, y: float) -> None:
        """Release the left button."""
        at = {"x": x, "y": y, "button": "left", "clickCount": 1}
        await self._send([(MOUSE, {"type": "mouseReleased", **at})])

    async def drag_data(self, kind: str, x: float, y: float, data: Mapping[str, Any]) -> None:
        """Send an event of an HTML drag: dragEnter, dragOver, drop or dragCancel."""
        await self._send([(DRAG, {"type": kind, "x": x, "y": y, "data": data})])

    @contextlib.asynccontextmanager
    async def intercepted_drags(self) -> AsyncIterator[asyncio.Future[Mapping[str, Any]]]:
        """Keep the browser from starting HTML drags itself; the future gets the data of the first.

        A drag of the browser's own would wait for a mouse of the operating system.
        """
        data: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()

        def on_intercepted(params: Mapping[str, Any]) -> None:
            if not data.done():
                data.set_result(params["data"])

        await self._try(("Input.setInterceptDrags", {"enabled": True}))
        self.cdp.on("Input.dragIntercepted", on_intercepted)
        try:
            yield data
        finally:
            self.cdp.remove_listener("Input.dragIntercepted", on_intercepted)
            with contextlib.suppress(*browser_errors()):
                await self.cdp.send("Input.setInterceptDrags", {"enabled": False})

    async def _await_page_events(self) -> None:
        """Wait until what the page reported about the input so far has arrived."""
        with contextlib.suppress(*browser_errors()):  # the page is gone: the next message says so
            await self.cdp.send(PAGE_THREAD[0], dict(PAGE_THREAD[1]))

    async def _try(self, message: Message) -> None:
        """Send a message that does not change the page's content."""
        try:
            await self.cdp.send(message[0], dict(message[1]))
        except browser_errors() as error:
            await self._raise_if_lost()
            if self._has_started:
                raise connection_lost() from None
            raise NotDispatched from error

    async def _send(self, messages: list[Message]) -> None:
        self._has_started = True
        sending = (self.cdp.send(method, dict(params)) for method, params in messages)
        try:
            await asyncio.gather(*sending)
        except browser_errors():
            await self._raise_if_lost()
            raise connection_lost() from None

    async def _raise_if_lost(self) -> None:
        if self.cdp is self.tab.cdp:
            raise browser_lost() from None
        deadline = asyncio.get_running_loop().time() + CLOSING_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            if not self.tab.is_alive:
                raise PageCrashed("The page was closed.", details={"effect": "unknown"})
            await asyncio.sleep(0.02)


def connection_lost() -> CdpLost:
    """Return the failure for input of which a part may have been sent."""
    return CdpLost(
        "The connection to the page broke during the input.", details={"effect": "unknown"}
    )


def _is_typed(text: str) -> bool:
    return len(text) <= MAX_TYPED_LENGTH and "\n" not in text and "\r" not in text


def _key_messages(key: Key) -> Iterator[Message]:
    yield KEY, {"type": "keyDown" if "text" in key else "rawKeyDown", **key}
    yield KEY, {"type": "keyUp", **{name: key[name] for name in key if name != "text"}}


def _typed_messages(text: str) -> Iterator[list[Message]]:
    keys = keyboard()
    for is_key, characters in groupby(text, lambda character: character in keys):
        if is_key:
            for character in characters:
                yield list(_key_messages(keys[character]))
        else:
            yield [(INSERT, {"text": "".join(characters)})]


def _bursts(text: str) -> Iterator[list[Message]]:
    """Return the messages of a text in groups; a space, which can click a button, starts one."""
    burst: list[Message] = []
    for index, messages in enumerate(_typed_messages(text)):
        is_full = index == 1 or len(burst) >= 2 * BURST or messages[0][1].get("text") == " "
        if burst and is_full:
            yield burst
            burst = []
        burst += messages
    yield burst
