"""What a hand touches a page with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from playwright.async_api import Page

TYPED_LENGTH = 200  # what is longer, or has lines, comes as if pasted


def is_typed(text: str) -> bool:
    """Tell whether a text is typed key by key; else it comes as if pasted."""
    return len(text) <= TYPED_LENGTH and "\n" not in text and "\r" not in text


class Fingers(Protocol):
    """A mouse and a keyboard; what fails may have been done in part."""

    async def press(self, x: float, y: float) -> None:
        """Move to a point of the viewport, in CSS pixels, and press the left button there."""

    async def write(self, text: str) -> None:
        """Write a text, not empty, in place of what is selected in the focused field."""

    async def strike(self, key: str) -> None:
        """Press one key: Enter or Delete."""


@dataclass(frozen=True, slots=True)
class PageFingers:
    """Playwright's mouse and keyboard."""

    page: Page

    async def press(self, x: float, y: float) -> None:
        """Press the left button."""
        mouse = self.page.mouse
        await mouse.move(x, y)
        await mouse.down()
        await mouse.up()

    async def write(self, text: str) -> None:
        """Write a text."""
        keyboard = self.page.keyboard
        await (keyboard.type(text) if is_typed(text) else keyboard.insert_text(text))

    async def strike(self, key: str) -> None:
        """Press one key."""
        await self.page.keyboard.press(key)
