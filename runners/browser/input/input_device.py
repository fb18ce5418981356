"""Input devices of a page: a mouse and a keyboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from playwright.async_api import Page

INPUT_SECONDS = 10.0
MAX_TYPED_LENGTH = 200  # a longer text, or one with several lines, is inserted at once
OUTSIDE = (-1.0, -1.0)  # a point of no page
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


class PressMissed(Exception):
    """Another element than the intended one was where the mouse pressed, or was to press.

    Attributes:
        has_pressed: the button was pressed, and released outside of the page: nothing was clicked.
    """

    def __init__(self, *, has_pressed: bool) -> None:
        super().__init__()
        self.has_pressed = has_pressed


class KeyCheck(Protocol):
    """What the page says of keys."""

    @property
    def is_current(self) -> DocumentCheck:
        """Return the check of the document."""

    async def require_focus(self, *, has_started: bool) -> None:
        """Raise if the next key would reach a document of another origin.

        Raises:
            NavigatedAway: The page shows another document.
            ElementNotFound: A frame of another origin has the focus.
        """


class PressCheck(Protocol):
    """What the page says of a press."""

    @property
    def is_current(self) -> DocumentCheck:
        """Return the check of the document."""

    async def is_ready(self) -> bool:
        """Return whether a press where the mouse is now would hit the intended element."""

    async def is_received(self) -> bool:
        """Return whether that element has received the press."""


def require_current_document(is_current: DocumentCheck, *, has_started: bool = False) -> None:
    """Raise NavigatedAway if input would reach another document than intended."""
    if not is_current():
        raise NavigatedAway(has_started=has_started)


def is_typed(text: str) -> bool:
    """Return whether a text is typed key by key; otherwise it is inserted at once."""
    return len(text) <= MAX_TYPED_LENGTH and "\n" not in text and "\r" not in text


class InputDevice(Protocol):
    """A mouse and a keyboard.

    Each method raises NavigatedAway, before it sends input, if the document is not current. If
    a method raises another exception, the input may have been sent in part.
    """

    async def click(self, x: float, y: float, check: PressCheck) -> None:
        """Move to a point of the viewport, in CSS pixels, and click the left button there.

        Raises:
            PressMissed: The intended element was not clicked.
        """

    async def type_text(self, text: str, check: KeyCheck) -> None:
        """Replace the selection of the focused field with a text that is not empty."""

    async def press_key(self, key: str, check: KeyCheck) -> None:
        """Press one key: Enter or Delete."""


class Mouse(Protocol):
    """The parts of a click."""

    async def move(self, x: float, y: float, is_current: DocumentCheck) -> None:
        """Move to a point of the viewport."""

    async def press_button(self, x: float, y: float, is_current: DocumentCheck) -> None:
        """Press the left button where the mouse is."""

    async def release_button(self, x: float, y: float) -> None:
        """Release the left button at a point."""


async def press(mouse: Mouse, x: float, y: float, check: PressCheck) -> None:
    """Move the mouse to a point and press its left button on the intended element.

    A page can put something else under the mouse at any time, also a frame of another origin, whose
    document no check can see. So a press that the element has not received is released outside:
    without a release nothing is clicked.

    Raises:
        PressMissed: The element has not received it.
    """
    await mouse.move(x, y, check.is_current)
    if not await check.is_ready():
        raise PressMissed(has_pressed=False)
    await mouse.press_button(x, y, check.is_current)
    is_received = False
    try:
        is_received = await check.is_received()
    finally:
        if not is_received:
            await mouse.release_button(*OUTSIDE)
    if not is_received:
        raise PressMissed(has_pressed=True)


@dataclass(frozen=True, slots=True)
class PlaywrightInput:
    """Playwright's mouse and keyboard."""

    page: Page

    async def click(self, x: float, y: float, check: PressCheck) -> None:
        """Click the left button at a point of the viewport."""
        await press(self, x, y, check)
        await self.release_button(x, y)

    async def move(self, x: float, y: float, is_current: DocumentCheck) -> None:
        """Move the mouse to a point of the viewport."""
        require_current_document(is_current)
        await self.page.mouse.move(x, y)

    async def press_button(self, x: float, y: float, is_current: DocumentCheck) -> None:
        """Press the left button where the mouse is."""
        require_current_document(is_current)
        await self.page.mouse.down()

    async def release_button(self, x: float, y: float) -> None:
        """Release the left button at a point."""
        if (x, y) == OUTSIDE:
            await self.page.mouse.move(x, y)
        await self.page.mouse.up()

    async def type_text(self, text: str, check: KeyCheck) -> None:
        """Type or insert a text into the focused field."""
        await check.require_focus(has_started=False)
        require_current_document(check.is_current)
        keyboard = self.page.keyboard
        await (keyboard.type(text) if is_typed(text) else keyboard.insert_text(text))

    async def press_key(self, key: str, check: KeyCheck) -> None:
        """Press one key."""
        await check.require_focus(has_started=False)
        require_current_document(check.is_current)
        await self.page.keyboard.press(key)
