"""The parameters of the browser actions (S1 §4.2 and ours), in camelCase; unknown keys are
rejected.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictStr, model_validator

from runners.tools.base import AS_WHOLE, Closed, Whole

MAX_TEXT_LENGTH = 50_000
MAX_XPATH_LENGTH = 2000
MAX_SAFE_INTEGER = 2**53 - 1  # larger ones lose precision in JSON
MAX_FILES = 10
CLICK_ATTRIBUTE = "data-mimo_click_id"
MAX_OPTIONS = 50  # that one browser_select selects
MAX_SCREENS = 50
MAX_PIXELS = 10_000
MAX_PRESSES = 50
_MOVES = "ArrowUp|ArrowDown|ArrowLeft|ArrowRight|Home|End"
# Keys of the page. Those of a browser (new tab, print, developer tools) and of the clipboard, which
# all sessions of a worker share, are not among them.
KEY_PATTERN = (
    rf"^(?:(?:Shift\+)?(?:Enter|Tab|Space|{_MOVES})|Backspace|Delete|Escape|PageUp|PageDown|[!-~]"
    rf"|Control\+(?:Shift\+)?(?:{_MOVES}|[zZ])|Control\+(?:Enter|Backspace|Delete|[aAbBiIkKyY])"
    r"|Alt\+(?:ArrowUp|ArrowDown|Enter))$"
)

Scope = Literal["viewport", "document"]
ClickStrategy = Literal["cdp_mouse", "dom_click"]
TypeStrategy = Literal["cdp_key", "dom_input"]
TabId = Annotated[
    int,
    Field(ge=0, le=MAX_SAFE_INTEGER),
    AS_WHOLE,
    Field(alias="tabId", description="As task_start returned it."),
]
Number = Annotated[int, Field(ge=1, le=MAX_SAFE_INTEGER), AS_WHOLE]
ClickId = Annotated[
    Number | None, Field(alias="clickId", description="As an observation or index returned it.")
]
XPath = Annotated[
    StrictStr | None,
    Field(
        min_length=1,
        max_length=MAX_XPATH_LENGTH,
        description="In place of clickId; beside it, it has to name the same element. ` >> ` enters"
        " a frame or a shadow root; in a shadow root steps are /tag[n].",
    ),
]
Within = Annotated[
    Scope,
    Field(description="viewport: what is in view. document: also what needs scrolling."),
]


class DialogChoice(Closed):
    """Whether to accept a question of the page; `text` answers a prompt, else its default does."""

    accept: StrictBool = Field(description="Accept the question, or dismiss it.")
    text: StrictStr | None = Field(
        default=None, max_length=2000, description="The answer to a prompt."
    )


Dialog = Annotated[
    DialogChoice | None,
    Field(
        description="Answer to the question (confirm, prompt) that the page asks because of this"
        " action; without it, such questions are dismissed."
    ),
]


Coordinate = Annotated[
    Annotated[int, Field(ge=0, le=16_000), AS_WHOLE] | None,
    Field(description="In pixels of the last screenshot of the visible part, from its top left."),
]


class OnTab(Closed):
    """An action on one tab of the task."""

    tab_id: TabId


class MayPoint(OnTab):
    """An action on an element by clickId or XPath, or by both, which have to name the same one."""

    click_id: ClickId = None
    xpath: XPath = None

    @property
    def points(self) -> bool:
        """Whether the action names an element."""
        return self.click_id is not None or self.xpath is not None


class Points(MayPoint):
    """An action that has to name an element."""

    @model_validator(mode="after")
    def _has_target(self) -> Self:
        if not self.points:
            raise ValueError("give clickId or xpath")
        return self


class TaskStart(Closed):
    """The page on which a task starts."""

    url: StrictStr | None = Field(
        default=None, description="An http or https URL; default: an empty page."
    )
    reuse_existing_tab: StrictBool = Field(
        default=False,
        alias="reuseExistingTab",
        description="Continue in the task's tab, if it has one, instead of a new one.",
    )
    group_title: StrictStr | None = Field(
        default=None,
        alias="groupTitle",
        max_length=200,
        description="The name of the tab group, in browsers that have tab groups.",
    )


class BrowserDebuggerAttach(OnTab):
    """The tab to attach to for mouse and keyboard input."""


class TaskStop(Closed):
    """Whether to close the tab with the task."""

    close_tab: StrictBool = Field(default=False, alias="closeTab")


class BrowserWaitForLoaded(OnTab):
    """Which tab to wait for, and for how long."""

    timeout_ms: Whole = Field(default=20_000, ge=1, le=20_000, alias="timeoutMs")


class BrowserScreenshot(OnTab):
    """Which tab to take a screenshot of."""

    full_page: StrictBool = Field(
        default=False, alias="fullPage", description="The whole page instead of its visible part."
    )
    numbers: StrictBool = Field(
        default=False, description="Draw the clickIds on it; only on the visible part."
    )
    long_edge: Annotated[int, Field(ge=200, le=16_000), AS_WHOLE] | None = Field(
        default=None, alias="longEdge", description="Shrink it to this many pixels at most."
    )

    @model_validator(mode="after")
    def _has_numbers_in_view(self) -> BrowserScreenshot:
        if self.full_page and self.numbers:
            raise ValueError("give fullPage or numbers, not both")
        return self


class BrowserReadabilityExtract(OnTab):
    """Which tab to read."""


class BrowserDomIndex(OnTab):
    """Which elements to number."""

    scope: Within = "document"
    assign_attr: StrictStr = Field(
        default=CLICK_ATTRIBUTE,
        alias="assignAttr",
        pattern=r"^data-[a-z0-9][a-z0-9_.-]{0,59}$",
        description="The attribute that holds each element's number on the page.",
    )


class BrowserObserve(OnTab):
    """Which tab to observe, and how much of it."""

    start: Number | None = Field(
        default=None,
        alias="from",
        description="The number of the line with which to read on: `cut.next` of an observation.",
    )
    full: StrictBool = Field(default=False, description="Longer: texts are not shortened.")
    boxes: StrictBool = Field(
        default=False, description="With position, size and XPath of each element."
    )


class BrowserXpathScan(OnTab):
    """Which elements to list with their XPaths."""

    scope: Within = "document"


class BrowserClick(MayPoint):
    """What to click, and how."""

    x: Coordinate = None
    y: Coordinate = None
    strategy: ClickStrategy = "cdp_mouse"
    dialog: Dialog = None

    @model_validator(mode="after")
    def _has_target(self) -> BrowserClick:
        if self.points == (self.x is not None) or (self.x is None) != (self.y is None):
            raise ValueError("give clickId or xpath, or else both x and y")
        if self.x is not None and self.strategy != "cdp_mouse":
            raise ValueError("a click at x and y needs the strategy cdp_mouse")
        return self


class BrowserType(MayPoint):
    """What to type, and where."""

    text: StrictStr = Field(
        max_length=MAX_TEXT_LENGTH,
        description="Replaces what the field contains: text, the label of an option, true or false"
        " for a checkbox, YYYY-MM-DD for a date.",
    )
    submit: StrictBool = Field(default=False, description="Press Enter in the field afterwards.")
    strategy: TypeStrategy = "cdp_key"
    dialog: Dialog = None


class BrowserGetHtml(OnTab):
    """Which markup to save."""

    xpath: XPath = None


class BrowserScroll(MayPoint):
    """What to scroll, and how far: exactly one of screens, to and untilNothingNew, or an element
    alone, which is scrolled into view.
    """

    screens: Annotated[int, Field(ge=-MAX_SCREENS, le=MAX_SCREENS), AS_WHOLE] | None = Field(
        default=None, description="How many screens down; negative: up."
    )
    to: Literal["top", "bottom"] | None = None
    until_nothing_new: StrictBool = Field(
        default=False,
        alias="untilNothingNew",
        description="Scroll down until no more content loads, at most maxScreens.",
    )
    max_screens: Whole = Field(default=20, ge=1, le=MAX_SCREENS, alias="maxScreens")

    @model_validator(mode="after")
    def _has_one_way(self) -> BrowserScroll:
        ways = [self.screens is not None, self.to is not None, self.until_nothing_new]
        if sum(ways) > 1:
            raise ValueError("give only one of screens, to and untilNothingNew")
        if not any(ways) and not self.points:
            raise ValueError("give screens, to, untilNothingNew, clickId or xpath")
        return self


class BrowserSelect(Points):
    """Which options to select in which list."""

    options: list[Annotated[StrictStr, Field(max_length=500)]] = Field(
        max_length=MAX_OPTIONS,
        description="Labels or values; several, or none, only where the list allows it. Others are"
        " deselected.",
    )
    dialog: Dialog = None


class BrowserHover(Points):
    """Over which element to move the mouse."""


class BrowserPressKey(MayPoint):
    """Which key to press, and in which element."""

    key: StrictStr = Field(
        pattern=KEY_PATTERN,
        description="Enter, Tab, Escape, Space, Backspace, Delete, Home, End, PageUp, PageDown,"
        " ArrowUp …, a character, or one with Shift+, Control+ or Alt+, such as Control+a.",
    )
    times: Whole = Field(default=1, ge=1, le=MAX_PRESSES)
    dialog: Dialog = None


class BrowserGoBack(OnTab):
    """The tab to go back in."""


_Offset = Annotated[int, Field(ge=-MAX_PIXELS, le=MAX_PIXELS), AS_WHOLE]


class BrowserDrag(Points):
    """What to drag, and where to drop it: on an element, or at a distance in pixels."""

    to_click_id: Number | None = Field(default=None, alias="toClickId")
    to_xpath: XPath = Field(default=None, alias="toXpath")
    dx: _Offset | None = Field(default=None, description="Pixels to the right.")
    dy: _Offset | None = Field(default=None, description="Pixels down.")

    @model_validator(mode="after")
    def _has_destination(self) -> BrowserDrag:
        has_element = self.to_click_id is not None or self.to_xpath is not None
        if has_element == (self.dx is not None or self.dy is not None):
            raise ValueError("give toClickId or toXpath, or else dx or dy")
        return self


SearchedText = Annotated[
    StrictStr,
    Field(
        min_length=1,
        max_length=500,
        pattern=r"\S",
        description="Upper and lower case and white space do not matter.",
    ),
]


class BrowserFindText(OnTab):
    """Which text to find on the page."""

    text: SearchedText
    scroll: StrictBool = Field(default=False, description="Scroll to the first match.")


class BrowserWaitForText(OnTab):
    """Which text to wait for, and for how long."""

    text: SearchedText
    gone: StrictBool = Field(default=False, description="Wait until the text has disappeared.")
    timeout_ms: Whole = Field(default=10_000, ge=1, le=30_000, alias="timeoutMs")


class BrowserListTabs(Closed):
    """No parameters."""


class BrowserSwitchTab(OnTab):
    """The tab to show."""


class BrowserCloseTab(OnTab):
    """The tab to close."""


class UploadedFile(Closed):
    """A file to upload: an artifact, or a file in the project folder."""

    artifact_id: StrictStr | None = Field(
        default=None, alias="artifactId", min_length=1, max_length=64
    )
    path: StrictStr | None = Field(default=None, min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.artifact_id is None) == (self.path is None):
            raise ValueError("give either artifactId or path")
        return self


class BrowserUpload(Points):
    """Which files to upload in which field."""

    files: list[UploadedFile] = Field(min_length=1, max_length=MAX_FILES)
