"""What is checked before input is sent to a page, and why it is not sent."""

from __future__ import annotations

from collections.abc import Callable

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


def require_current_document(is_current: DocumentCheck, *, has_started: bool = False) -> None:
    """Raise NavigatedAway if input would reach another document than intended."""
    if not is_current():
        raise NavigatedAway(has_started=has_started)
