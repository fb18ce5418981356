"""Send a person's mouse and keyboard events from the live page to the browser as real input.

Typed text is sent to the page and stored nowhere.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runners.actions.own_pages import page_to_open
from runners.trust_level import TrustLevel

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from runners.browser.session.tab import Tab

Event = Mapping[str, Any]
Message = tuple[str, Mapping[str, Any]]
INPUT_SECONDS = 1.0  # a page that hangs, or shows a dialog, does not process input in time
MOUSE, KEY, INSERT = "Input.dispatchMouseEvent", "Input.dispatchKeyEvent", "Input.insertText"
_MOUSE_TYPES = {"move": "mouseMoved", "down": "mousePressed", "up": "mouseReleased"}
CONTROL, META = 2, 4


async def send_input(tab: Tab, cdp: CDPSession, events: Sequence[Event], trust: TrustLevel) -> None:
    """Send a person's events to the page in order; events that the page does not process are lost.

    Raises:
        ToolFailed: The page is lost, the caller may not open the URL, or it is the product's own.
    """
    batch: list[Event] = []
    for event in events:
        if event["kind"] == "go":
            await _send(tab, cdp, batch)
            batch = []
            await _navigate(tab, cdp, str(event["to"]), trust)
        else:
            batch.append(event)
    await _send(tab, cdp, batch)


async def _send(tab: Tab, cdp: CDPSession, events: Sequence[Event]) -> None:
    """Send messages without waiting for each reply; the browser processes them in order."""
    messages = [message for event in events for message in _messages(event)]
    if not messages:
        return
    await tab.frame_input.open()
    sending = (cdp.send(method, dict(params)) for method, params in messages)

    async def all_sent() -> None:
        await asyncio.gather(*sending)

    with contextlib.suppress(TimeoutError):
        await tab.perform(all_sent(), seconds=INPUT_SECONDS)


async def _navigate(tab: Tab, cdp: CDPSession, to: str, trust: TrustLevel) -> None:
    with contextlib.suppress(TimeoutError):
        await tab.perform(_navigation(cdp, to, trust), seconds=INPUT_SECONDS * 5)


async def _navigation(cdp: CDPSession, to: str, trust: TrustLevel) -> None:
    if to == "reload":
        await cdp.send("Page.reload")
    elif to in ("back", "forward"):
        history = await cdp.send("Page.getNavigationHistory")
        index = history["currentIndex"] + (1 if to == "forward" else -1)
        if 0 <= index < len(history["entries"]):
            entry = {"entryId": history["entries"][index]["id"]}
            await cdp.send("Page.navigateToHistoryEntry", entry)
    else:
        url = page_to_open(to, trust)
        await cdp.send("Page.navigate", {"url": url})


def _messages(event: Event) -> Iterator[Message]:
    """Yield the CDP messages of an event."""
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
    params = {
        "key": event["key"],
        "code": event.get("code", ""),
        "modifiers": modifiers,
        "windowsVirtualKeyCode": event.get("keyCode", 0),
        "autoRepeat": event.get("repeat", False),
    }
    if event["action"] == "up":
        return {"type": "keyUp", **params}
    text = "\r" if event["key"] == "Enter" else event["key"]
    if len(text) != 1 or modifiers & (CONTROL | META):
        return {"type": "rawKeyDown", **params}
    return {"type": "keyDown", "text": text, **params}
