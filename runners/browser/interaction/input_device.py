"""Input devices of a page: a mouse and a keyboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from playwright.async_api import Page

MAX_TYPED_LENGTH = 200  # a longer text, or one with several lines, is inserted at once
# Returns whether the page still shows the document in which the element was located.
DocumentCheck = Callable[[], bool]


class NavigatedAway(Exception):
    """The page navigates to another document, which must not receive the input.

    Attributes:
        has_started: part of the input was sent to the document before.
    """

    def __init__(self, *, has_started: bool) -> None:
        super().__init__()
        self.has_started = has_started


def require_current_document(is_current: DocumentCheck, *, has_started: bool = False) -> None:
    """Raise NavigatedAway if input would reach another document than intended."""
    if not is_current():
        raise NavigatedAway(has_started=has_started)


def is_typed(text: str) -> bool:
    """Return whether a text is typed key by key; otherwise it is inserted at once."""
    return len(text) <= MAX_TYPED_LENGTH and "\n" not in text and "\r" not in text


class InputDevice(Protocol):
    """A mouse and a keyboard.

    Each method checks `is_current` before it sends input, and raises NavigatedAway if it is false.
    If a method raises another exception, the input may have been sent in part.
    """

    async def click(self, x: float, y: float, is_current: DocumentCheck) -> None:
        """Move to a point of the viewport, in CSS pixels, and click the left button."""

    async def type_text(self, text: str, is_current: DocumentCheck) -> None:
        """Replace the selection of the focused field with a text that is not empty."""

    async def press_key(self, key: str, is_current: DocumentCheck) -> None:
        """Press one key: Enter or Delete."""


@dataclass(frozen=True, slots=True)
class PlaywrightInput:
    """Playwright's mouse and keyboard."""

    page: Page

    async def click(self, x: float, y: float, is_current: DocumentCheck) -> None:
        """Click the left button at a point of the viewport."""
        mouse = self.page.mouse
        await mouse.move(x, y)
        require_current_document(is_current)
        await mouse.down()
        await mouse.up()

    async def type_text(self, text: str, is_current: DocumentCheck) -> None:
        """Type or insert a text into the focused field."""
        require_current_document(is_current)
        keyboard = self.page.keyboard
        await (keyboard.type(text) if is_typed(text) else keyboard.insert_text(text))

    async def press_key(self, key: str, is_current: DocumentCheck) -> None:
        """Press one key."""
        require_current_document(is_current)
        await self.page.keyboard.press(key)
