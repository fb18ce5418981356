"""A person's mouse and keyboard on a page: what they did elsewhere, done here as real input.

What is typed goes to the page and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runners.actions.own_pages import refuse_own_page
from runners.network.address import check_address
from runners.trust import TrustLevel

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from runners.browser.session.tab import Tab

Event = Mapping[str, Any]
Message = tuple[str, Mapping[str, Any]]
TAKES_SECONDS = 1.0  # a page that hangs, or asks something, takes no more at once
MOUSE, KEY, INSERT = "Input.dispatchMouseEvent", "Input.dispatchKeyEvent", "Input.insertText"
_MOUSE_TYPES = {"move": "mouseMoved", "down": "mousePressed", "up": "mouseReleased"}
CONTROL, META = 2, 4


async def act(tab: Tab, line: CDPSession, events: Sequence[Event], trust: TrustLevel) -> None:
    """Do what a person did, in order; a page that takes nothing any more is left to itself.

    Raises:
        ToolFailed: The page is lost, or an address is not for this caller, or one of our own.
    """
    run: list[Event] = []
    for event in events:
        if event["kind"] == "go":
            await _send(tab, line, run)
            run = []
            await _go(tab, line, str(event["to"]), trust)
        else:
            run.append(event)
    await _send(tab, line, run)


async def _send(tab: Tab, line: CDPSession, events: Sequence[Event]) -> None:
    """Send messages one behind the other; the browser takes them in order."""
    messages = [message for event in events for message in _messages(event)]
    if not messages:
        return
    sending = (line.send(method, dict(params)) for method, params in messages)

    async def all_sent() -> None:
        await asyncio.gather(*sending)

    with contextlib.suppress(TimeoutError):
        await tab.perform(all_sent(), seconds=TAKES_SECONDS)


async def _go(tab: Tab, line: CDPSession, to: str, trust: TrustLevel) -> None:
    with contextlib.suppress(TimeoutError):
        await tab.perform(_gone(line, to, trust), seconds=TAKES_SECONDS * 5)


async def _gone(line: CDPSession, to: str, trust: TrustLevel) -> None:
    if to == "reload":
        await line.send("Page.reload")
    elif to in ("back", "forward"):
        history = await line.send("Page.getNavigationHistory")
        index = history["currentIndex"] + (1 if to == "forward" else -1)
        if 0 <= index < len(history["entries"]):
            entry = {"entryId": history["entries"][index]["id"]}
            await line.send("Page.navigateToHistoryEntry", entry)
    else:
        url = check_address(to, trust)
        refuse_own_page(url)
        await line.send("Page.navigate", {"url": url})


def _messages(event: Event) -> Iterator[Message]:
    """Return what the browser is told of one thing that a person did."""
    modifiers = event.get("modifiers", 0)
    if event["kind"] == "mouse":
        yield (
            MOUSE,
            {
                "type": _MOUSE_TYPES[event["action"]],
                "x": event["x"],
                "y": event["y"],
                "button": event.get("button", "none"),
                "buttons": event.get("buttons", 0),
                "clickCount": event.get("clicks", 0),
                "modifiers": modifiers,
            },
        )
    elif event["kind"] == "wheel":
        yield (
            MOUSE,
            {
                "type": "mouseWheel",
                "x": event["x"],
                "y": event["y"],
                "deltaX": event["deltaX"],
                "deltaY": event["deltaY"],
                "modifiers": modifiers,
            },
        )
    elif event["kind"] == "key":
        yield KEY, _key(event, modifiers)
    elif event["kind"] == "text":
        yield INSERT, {"text": event["text"]}


def _key(event: Event, modifiers: int) -> dict[str, Any]:
    told = {
        "key": event["key"],
        "code": event.get("code", ""),
        "modifiers": modifiers,
        "windowsVirtualKeyCode": event.get("keyCode", 0),
        "autoRepeat": event.get("repeat", False),
    }
    if event["action"] == "up":
        return {"type": "keyUp", **told}
    text = "\r" if event["key"] == "Enter" else event["key"]
    if len(text) != 1 or modifiers & (CONTROL | META):
        return {"type": "rawKeyDown", **told}
    return {"type": "keyDown", "text": text, **told}
