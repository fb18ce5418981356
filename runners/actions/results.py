"""What each browser action answers (S1 §4.2), in camelCase as JSON."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from runners.actions.parameters import ClickStrategy, TypeStrategy
from runners.tools.base import Closed


class ActionResult(Closed):
    """A result; `warnings` say what was done otherwise than asked (S1 §4.5, §4.6)."""

    warnings: list[str] = Field(default_factory=list)

    def as_output(self) -> dict[str, Any]:
        """Return it as JSON: without what it does not have, and without warnings where none is."""
        told = self.model_dump(by_alias=True, exclude_none=True)
        return told if told["warnings"] else {k: v for k, v in told.items() if k != "warnings"}


class TaskStarted(ActionResult):
    """The tab that the task's actions are for."""

    tab_id: int = Field(alias="tabId")
    window_id: int = Field(alias="windowId")
    group_id: int | None = Field(default=None, alias="groupId")
    url: str
    title: str | None = None


class DebuggerAttached(ActionResult):
    """Mouse and keyboard are at hand."""

    attached: Literal[True] = True


class TaskStopped(ActionResult):
    """The task's tab takes no more actions."""

    stopped: Literal[True] = True


class PageLoaded(ActionResult):
    """The page and what belongs to it is there."""

    status: Literal["complete"] = "complete"


class ScreenshotTaken(ActionResult):
    """A picture that was kept; its sides are in pixels."""

    artifact_id: str = Field(alias="artifactId")
    url: str
    width: int
    height: int


class PageText(ActionResult):
    """A page's text; a long one is in the artifact alone, and `truncated` here."""

    artifact_id: str | None = Field(default=None, alias="artifactId")
    text: str | None = None
    markdown: str | None = None
    title: str | None = None
    content_length_bytes: int = Field(alias="contentLengthBytes")
    truncated: bool = False


class Box(Closed):
    """Where an element is: CSS pixels from the upper left corner of what is in view."""

    x: int
    y: int
    w: int
    h: int


class IndexedElement(Closed):
    """An element that can be used, with the number that it keeps while it lives."""

    click_id: int = Field(alias="clickId")
    tag: str
    text: str | None = None
    xpath: str | None = None
    bbox: Box | None = None


class DomIndex(ActionResult):
    """The elements by position, the uppermost first."""

    elements: list[IndexedElement]


class ScannedElement(Closed):
    """An element that can be used, and its number where an index gave it one."""

    xpath: str
    tag: str
    text: str | None = None
    click_id: int | None = Field(default=None, alias="clickId")
    bbox: Box | None = None


class XpathScan(ActionResult):
    """The elements by position, the uppermost first."""

    elements: list[ScannedElement]


class Clicked(ActionResult):
    """The element was clicked, by this."""

    clicked: Literal[True] = True
    strategy: ClickStrategy


class Typed(ActionResult):
    """The field was filled, by this."""

    typed: Literal[True] = True
    strategy: TypeStrategy


class HtmlSaved(ActionResult):
    """Markup that was kept."""

    artifact_id: str = Field(alias="artifactId")
    url: str
