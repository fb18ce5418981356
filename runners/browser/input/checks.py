"""What is checked before input is sent to a page, and why it is not sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

INPUT_SECONDS = 10.0
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
