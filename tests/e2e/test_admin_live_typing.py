"""Test what the live page of a task sends for characters that no single key has: composed by an
input method or a dead key, typed with AltGr, entered on a soft keyboard. The test plays the
worker's end of the WebSocket.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import WebSocketRoute

from tests.e2e.test_admin_chat import open_task
from tests.support.admin.live_pages import click_at
from tests.support.admin.visitor import Visitor
from tests.support.runs.waiting import wait_until

PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"  # a GIF
STATE = {"v": 1, "type": "live_state", "page": True, "mayAct": True, "url": "https://a.example/"}
FRAME = {"v": 1, "type": "live_frame", "width": 1280, "height": 720, "data": PIXEL}


class Keyboard:
    """The visitor's keyboard at the live page, and the input that the page sent."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor, self._sent = visitor, list[dict[str, Any]]()

    def accept(self, socket: WebSocketRoute) -> None:
        """Receive what the live page sends, and send it a page that the person may control."""

        def receive(message: str | bytes) -> None:
            frame = json.loads(message)
            if frame["type"] == "auth":
                socket.send(json.dumps(STATE))
                socket.send(json.dumps(FRAME))
            else:
                self._sent += frame["events"]

        socket.on_message(receive)

    def cdp(self, *messages: tuple[str, dict[str, Any]]) -> None:
        """Send input to the visitor's browser."""

        async def send_events() -> None:
            session = await self._visitor.page.context.new_cdp_session(self._visitor.page)
            for name, params in messages:
                await session.send(f"Input.{name}", params)
            await session.detach()

        self._visitor.do(send_events())

    def replace(self, text: str) -> None:
        """Fill the field as autocorrection or dictation may do: with an event without `data`."""
        script = """(field, text) => { field.value = text;
        field.dispatchEvent(new InputEvent("input", {inputType: "insertReplacementText"})); }"""
        field = self._visitor.page.locator("[data-live-keys]")
        self._visitor.do(field.evaluate(script, text))

    def press(self, key: str, code: str, number: int, **options: Any) -> None:
        """Press and release a key; `text` is the text that the operating system produces."""
        key_event = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        down_type = "keyDown" if "text" in options else "rawKeyDown"
        down, up = {"type": down_type, **key_event, **options}, {"type": "keyUp", **key_event}
        self.cdp(("dispatchKeyEvent", down), ("dispatchKeyEvent", up))

    def sent_input(self) -> list[str]:
        """Press Escape and return the texts and keys that the page sent before it, in order."""
        self.press("Escape", "Escape", 27)
        wait_until(lambda: any(event.get("key") == "Escape" for event in self._sent))
        sent = [event for event in self._sent if event.get("action", "down") == "down"]
        self._sent.clear()
        return [
            event["text"] if event["kind"] == "text" else f"<{event['key']}>"
            for event in sent
            if event["kind"] in ("text", "key") and event.get("key") != "Escape"
        ]


@pytest.fixture
def keyboard(visitor: Visitor, make_task: Callable[..., str]) -> Keyboard:
    """Return the keyboard of a visitor who has clicked into the page."""
    keyboard = Keyboard(visitor)
    visitor.do(visitor.page.route_web_socket(lambda url: url.endswith("/live"), keyboard.accept))
    open_task(visitor, make_task())
    visitor.wait_for("[data-live-screen][data-acts]")
    click_at(visitor, 200, 120)
    return keyboard


@pytest.mark.slow
def test_text_without_a_key_is_sent_as_text(keyboard: Keyboard) -> None:
    keyboard.cdp(("insertText", {"text": "Å"}))
    keyboard.press("s", "KeyS", 83, text="s")
    keyboard.cdp(("insertText", {"text": "😀"}))
    assert keyboard.sent_input() == ["Å", "<s>", "😀"]


@pytest.mark.slow
def test_a_composition_is_sent_when_it_ends(keyboard: Keyboard) -> None:
    composition = {"text": "に", "selectionStart": 1, "selectionEnd": 1}
    keyboard.cdp(("imeSetComposition", composition), ("insertText", {"text": "日本"}))
    assert keyboard.sent_input() == ["日本"]
    keyboard.cdp(("imeSetComposition", composition), ("insertText", {"text": "語"}))
    assert keyboard.sent_input() == ["語"]


@pytest.mark.slow
def test_a_character_typed_with_alt_graph_is_sent_as_a_key(keyboard: Keyboard) -> None:
    keyboard.press("@", "KeyQ", 81, text="@")
    assert keyboard.sent_input() == ["<@>"]


@pytest.mark.slow
def test_a_letter_after_a_dead_key_is_sent_as_the_combined_character(keyboard: Keyboard) -> None:
    """Windows does not compose: it sends the letter's key with the text of both keys."""
    keyboard.press("Dead", "BracketRight", 221)
    keyboard.press("Shift", "ShiftLeft", 16)
    keyboard.press("E", "KeyE", 69, text="É", modifiers=8)
    keyboard.press("e", "KeyE", 69, text="e")
    assert keyboard.sent_input() == ["<Shift>", "É", "<e>"]


@pytest.mark.slow
def test_a_deleted_dead_key_does_not_change_a_later_key(keyboard: Keyboard) -> None:
    keyboard.press("Dead", "BracketRight", 221)
    keyboard.press("Backspace", "Backspace", 8)
    keyboard.press("e", "KeyE", 69, text="e")
    assert keyboard.sent_input() == ["<Backspace>", "<e>"]


@pytest.mark.slow
def test_a_key_with_several_characters_is_sent_as_text(keyboard: Keyboard) -> None:
    keyboard.press("لا", "KeyB", 66, text="لا")
    assert keyboard.sent_input() == ["لا"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("deleteBackward", "<Backspace>"),
        ("deleteForward", "<Delete>"),
        ("insertNewline", "<Enter>"),
        ("insertLineBreak", "<Enter>"),
    ],
)
def test_a_soft_keyboards_edit_commands_are_sent_as_keys(
    keyboard: Keyboard, command: str, key: str
) -> None:
    keyboard.press("Unidentified", "", 229, text="a")
    keyboard.press("Unidentified", "", 229, commands=[command])
    assert keyboard.sent_input() == ["a", key]


@pytest.mark.slow
def test_a_replacement_is_sent_as_text(keyboard: Keyboard) -> None:
    keyboard.replace("straße")
    keyboard.replace("zwei")
    assert keyboard.sent_input() == ["straße", "zwei"]
