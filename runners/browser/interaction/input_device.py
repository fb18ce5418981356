"""What a hand touches a page with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from playwright.async_api import Page

TYPED_LENGTH = 200  # what is longer, or has lines, comes as if pasted
DocumentCheck = Callable[[], bool]  # whether the page still shows the document that was aimed at


class NavigatedAway(Exception):
    """The page is on its way to another document, which is not to be touched instead.

    Attributes:
        begun: something was done to the document before.
    """

    def __init__(self, *, begun: bool) -> None:
        super().__init__()
        self.begun = begun


def require_current_document(stays: DocumentCheck, *, begun: bool = False) -> None:
    """Let a deed go on.

    Raises:
        PageLeft: It would reach another document than was meant.
    """
    if not stays():
        raise NavigatedAway(begun=begun)


def is_typed(text: str) -> bool:
    """Tell whether a text is typed key by key; else it comes as if pasted."""
    return len(text) <= TYPED_LENGTH and "\n" not in text and "\r" not in text


class InputDevice(Protocol):
    """A mouse and a keyboard; what fails may have been done in part. Before each thing that does
    something `stays` is asked, and PageLeft raised where the page does not.
    """

    async def press(self, x: float, y: float, stays: DocumentCheck) -> None:
        """Move to a point of the viewport, in CSS pixels, and press the left button there."""

    async def write(self, text: str, stays: DocumentCheck) -> None:
        """Write a text, not empty, in place of what is selected in the focused field."""

    async def press_key(self, key: str, stays: DocumentCheck) -> None:
        """Press one key: Enter or Delete."""


@dataclass(frozen=True, slots=True)
class PlaywrightInput:
    """Playwright's mouse and keyboard."""

    page: Page

    async def press(self, x: float, y: float, stays: DocumentCheck) -> None:
        """Press the left button."""
        mouse = self.page.mouse
        await mouse.move(x, y)
        require_current_document(stays)
        await mouse.down()
        await mouse.up()

    async def write(self, text: str, stays: DocumentCheck) -> None:
        """Write a text."""
        require_current_document(stays)
        keyboard = self.page.keyboard
        await (keyboard.type(text) if is_typed(text) else keyboard.insert_text(text))

    async def press_key(self, key: str, stays: DocumentCheck) -> None:
        """Press one key."""
        require_current_document(stays)
        await self.page.keyboard.press(key)
