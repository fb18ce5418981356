"""Input on an element: what the page says before and after it (page/target.js)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from runners.actions.judged import CHANGED
from runners.browser.errors import ContextLost
from runners.browser.input.checks import INPUT_SECONDS, DocumentCheck, NavigatedAway
from runners.browser.input.locator import element_changed
from runners.browser.session.tab import Tab
from runners.errors import ElementNotFound, NavigationTimeout, ToolFailed

REPORT_SECONDS = 0.2  # for the report of a press from a page that is gone
LEAVING_SECONDS = 0.5  # for an answer of a page that navigates away: it may never come
_POINT_MESSAGES = {
    "outside": "The point is outside of the page.",
    "moving": "What is at the point keeps changing.",
    "other_origin": "A frame of another origin is there, which gets no input; open its address as a"
    " page of its own.",
}


@dataclass(slots=True)
class PagePress:
    """The press of the element that was located last, or of what is at a point of the viewport.

    Attributes:
        x, y: where to press, in CSS pixels of the viewport.
        command: `pressReady` for an element, `pointReady` for a point.
        seconds_left: the seconds left, at most those given.
    """

    tab: Tab
    x: float
    y: float
    is_current: DocumentCheck
    command: Literal["pressReady", "pointReady"]
    seconds_left: Callable[[float], float]
    _report: asyncio.Future[dict[str, Any]] | None = field(default=None, init=False)
    _documents: int = field(init=False)

    def __post_init__(self) -> None:
        """Remember which document is shown."""
        self._documents = self.tab.documents

    async def is_ready(self) -> bool:
        """Return whether a press would hit the element; wait until the page has drawn a frame.

        Raises:
            NavigatedAway: The page shows another document.
            ElementNotFound: Nothing can be pressed at the point.
        """
        # The page answers it when it is pressed, so that the answer comes before a navigation.
        self._report = asyncio.ensure_future(self._run("pressReport", INPUT_SECONDS))
        self._report.add_done_callback(_retrieved)
        try:
            answer = await self._run(self.command, INPUT_SECONDS, {"x": self.x, "y": self.y})
        except ContextLost:
            raise NavigatedAway(has_started=False) from None
        if "reason" in answer:
            raise nothing_to_click(answer["reason"])
        return bool(answer["isReady"])

    async def is_received(self) -> bool:
        """Return whether the element has received the press.

        Raises:
            NavigatedAway: The page navigates because it has.
            ElementNotFound: The page shows another document, and what it hit is unknown.
        """
        try:
            answer = await self._run("pressOutcome", self._answer_seconds)
        except ContextLost:
            if await self._was_reported():
                raise NavigatedAway(has_started=True) from None
            raise not_received() from None
        return bool(answer["outcome"] == "hit")

    async def outcome(self) -> str:
        """End the watching; return what a click hit: a page that navigates was clicked.

        Raises:
            ElementChanged: The page changed the judged element after the press; no click was made.
        """
        try:
            answer = await self._run("clickOutcome", self._answer_seconds)
        except ContextLost:
            return "hit"
        except NavigationTimeout:
            if self.tab.is_leaving:
                return "hit"
            raise
        if answer["outcome"] == CHANGED:
            raise element_changed("the click", answer["changed"], effect="unknown")
        # A page that navigates since the press may get no more events.
        is_gone = self.tab.is_leaving or self.tab.documents != self._documents
        return "hit" if answer["outcome"] == "diverted" and is_gone else str(answer["outcome"])

    async def _was_reported(self) -> bool:
        if self._report is None:
            return False
        with contextlib.suppress(TimeoutError, ContextLost, ToolFailed):
            report = await asyncio.wait_for(self._report, REPORT_SECONDS)
            return bool(report["outcome"] == "hit")
        return False

    async def _run(self, command: str, seconds: float, args: object = None) -> dict[str, Any]:
        return await self.tab.run_command(command, args, seconds=self.seconds_left(seconds))

    @property
    def _answer_seconds(self) -> float:
        return LEAVING_SECONDS if self.tab.is_leaving else INPUT_SECONDS


@dataclass(frozen=True, slots=True)
class PageKeys:
    """Keys for the element of this origin that has the focus."""

    tab: Tab
    is_current: DocumentCheck
    seconds_left: Callable[[float], float]

    async def require_focus(self, *, has_started: bool) -> None:
        """Raise if the next key would reach a document of another origin.

        Raises:
            NavigatedAway: The page shows another document.
            ElementNotFound: A frame of another origin has the focus.
            NavigationTimeout, PageCrashed: As `Tab.run_command`.
        """
        effect = "unknown" if has_started else "none"
        try:
            seconds = self.seconds_left(INPUT_SECONDS)
            answer = await self.tab.run_command("keysReady", seconds=seconds)
        except ContextLost:
            raise NavigatedAway(has_started=has_started) from None
        except ToolFailed as failure:
            failure.details["effect"] = effect
            raise
        if not answer["isReady"]:
            raise ElementNotFound(
                "The page has moved the focus to a frame of another origin, which gets no input.",
                details={"reason": "other_origin", "effect": effect},
            )


def nothing_to_click(reason: str) -> ElementNotFound:
    """Return the failure for a point of the viewport."""
    return ElementNotFound(_POINT_MESSAGES[reason], details={"reason": reason, "effect": "none"})


def not_received() -> ElementNotFound:
    """Return the failure for a press whose receiver is unknown."""
    return ElementNotFound(
        "The element did not receive the click: the page put something else there, or navigated, at"
        " that moment. Look at the page again.",
        details={"reason": "not_received", "effect": "unknown"},
    )


def _retrieved(report: asyncio.Future[dict[str, Any]]) -> None:
    """Retrieve the exception of a report that is not awaited."""
    if not report.cancelled():
        report.exception()
