"""The results of the browser actions (S1 §4.2 and ours), in camelCase as JSON."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from runners.actions.parameters import ClickStrategy, TypeStrategy
from runners.tools.base import Closed

MouseStrategy = Literal["cdp_mouse", "dom_events"]
KeyStrategy = Literal["cdp_key", "dom_events"]


class ActionResult(Closed):
    """A result; `warnings` name what was done differently than requested (S1 §4.5, §4.6)."""

    warnings: list[str] = Field(default_factory=list)

    def as_output(self) -> dict[str, Any]:
        """Return the result as a JSON object, without null fields and without empty warnings."""
        data = self.model_dump(by_alias=True, exclude_none=True)
        return data if data["warnings"] else {k: v for k, v in data.items() if k != "warnings"}


class DownloadedFile(Closed):
    """A file that the page downloaded, stored as an artifact.

    Attributes:
        text: the start of the text of a text file or a PDF; with `truncated` there is more, in the
            artifact, or for a PDF in `text_artifact_id`.
    """

    artifact_id: str = Field(alias="artifactId")
    file_name: str = Field(alias="fileName")
    bytes: int
    media_type: str = Field(alias="mediaType")
    text: str | None = None
    truncated: Literal[True] | None = None
    text_artifact_id: str | None = Field(default=None, alias="textArtifactId")


class MayDownload(ActionResult):
    """A result of an action that may start downloads."""

    downloads: list[DownloadedFile] | None = None


class TaskStarted(MayDownload):
    """The tab on which the task's actions work."""

    tab_id: int = Field(alias="tabId")
    window_id: int = Field(alias="windowId")
    group_id: int | None = Field(default=None, alias="groupId")
    url: str
    title: str | None = None


class DebuggerAttached(ActionResult):
    """The debugger is attached: real mouse and keyboard input is possible."""

    attached: Literal[True] = True


class TaskStopped(ActionResult):
    """The task's tab accepts no more actions."""

    stopped: Literal[True] = True


class PageLoaded(MayDownload):
    """The page and its resources have loaded."""

    status: Literal["complete"] = "complete"


class ScreenshotTaken(ActionResult):
    """A stored screenshot; width and height are in pixels."""

    artifact_id: str = Field(alias="artifactId")
    url: str
    width: int
    height: int


class PageText(ActionResult):
    """A page's text; a long text is only in the artifact, and `truncated` is true.

    `page_type` is guessed from the markup; older extensions do not say it.
    """

    artifact_id: str | None = Field(default=None, alias="artifactId")
    text: str | None = None
    markdown: str | None = None
    title: str | None = None
    page_type: str | None = Field(default=None, alias="pageType", pattern="^[a-z]{1,32}$")
    content_length_bytes: int = Field(alias="contentLengthBytes")
    truncated: bool = False


class Box(Closed):
    """The position of an element: CSS pixels from the upper left corner of the viewport."""

    x: int
    y: int
    w: int
    h: int


class IndexedElement(Closed):
    """A usable element and its number, which stays the same while the element exists."""

    click_id: int = Field(alias="clickId")
    tag: str
    text: str | None = None
    xpath: str | None = None
    bbox: Box | None = None


class DomIndex(ActionResult):
    """The elements by position, topmost first."""

    elements: list[IndexedElement]


class Viewport(Closed):
    """The size of the visible part of a page, in CSS pixels."""

    width: int
    height: int


class OmittedLines(Closed):
    """What an observation leaves out: `left` lines; the next one is number `next`."""

    next: int
    left: int


class PageObservation(ActionResult):
    """What a page shows, as text for a model, and what happened since its last observation.

    `status` is the HTTP status of the document, absent if it has none.
    """

    url: str
    title: str
    status: int | None = None
    viewport: Viewport
    scroll: str
    text: str
    elements: int
    cut: OmittedLines | None = None
    dialogs: list[str] | None = None
    downloads: list[str] | None = None
    windows: list[str] | None = None
    console_errors: list[str] | None = Field(default=None, alias="consoleErrors")


class ScannedElement(Closed):
    """A usable element, with its number if an index assigned one."""

    xpath: str
    tag: str
    text: str | None = None
    click_id: int | None = Field(default=None, alias="clickId")
    bbox: Box | None = None


class XpathScan(ActionResult):
    """The elements by position, topmost first."""

    elements: list[ScannedElement]


class Clicked(MayDownload):
    """The element was clicked with this strategy."""

    clicked: Literal[True] = True
    strategy: ClickStrategy


class Typed(MayDownload):
    """The field was filled with this strategy."""

    typed: Literal[True] = True
    strategy: TypeStrategy


class HtmlSaved(ActionResult):
    """Stored markup."""

    artifact_id: str = Field(alias="artifactId")
    url: str


class Scrolled(ActionResult):
    """The position after the scrolling.

    Attributes:
        moved: the position changed.
        screen: for example "screen 2 of 7"; of the scrolled area if an element was given.
        at_end: nothing is left below.
        screens: with untilNothingNew, how many screens were scrolled.
    """

    moved: bool
    screen: str
    at_end: bool = Field(alias="atEnd")
    screens: int | None = None


class OptionsSelected(MayDownload):
    """The labels of all options that are selected now."""

    selected: list[str]


class Hovered(ActionResult):
    """The mouse is over the element."""

    hovered: Literal[True] = True
    strategy: MouseStrategy


class KeyPressed(MayDownload):
    """The key was pressed; `focus` names the element that had the focus before."""

    pressed: Literal[True] = True
    strategy: KeyStrategy
    focus: str


class WentBack(ActionResult):
    """The earlier page that is shown now."""

    url: str
    title: str | None = None


class Dragged(ActionResult):
    """The element was dragged and dropped."""

    dragged: Literal[True] = True
    strategy: MouseStrategy


class TextMatch(Closed):
    """One occurrence: the text around it, its screen, and the nearest usable element."""

    text: str
    screen: int
    click_id: int | None = Field(default=None, alias="clickId")


class TextFound(ActionResult):
    """The first occurrences of a text, in view order, and the number of all."""

    total: int
    matches: list[TextMatch]


class TextAwaited(ActionResult):
    """The text has appeared (`found`), or disappeared (`gone`, where that was waited for)."""

    found: bool
    gone: bool | None = None


class OpenTab(Closed):
    """A tab of the task; `current` is the one that was used last."""

    tab_id: int = Field(alias="tabId")
    url: str
    title: str | None = None
    current: Literal[True] | None = None


class TabList(ActionResult):
    """The task's tabs, in the order of their opening."""

    tabs: list[OpenTab]


class TabShown(ActionResult):
    """The tab that is current now."""

    tab_id: int = Field(alias="tabId")
    url: str
    title: str | None = None


class TabClosed(TabShown):
    """The tab was closed; the others are the fields of the tab that is current now."""

    closed: Literal[True] = True


class UploadedName(Closed):
    """A file that was given to the page."""

    file_name: str = Field(alias="fileName")
    bytes: int


class FilesUploaded(MayDownload):
    """The page got the files; whether it sent them is its own matter."""

    uploaded: Literal[True] = True
    files: list[UploadedName]
