"""What each browser action takes (S1 §4.2): closed, and in camelCase as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictStr, model_validator

from runners.tools.base import Closed, Whole

LONGEST_TEXT = 50_000
LONGEST_XPATH = 2000
LARGEST_NUMBER = 2**53 - 1  # that JSON carries whole
CLICK_ATTRIBUTE = "data-mimo_click_id"

Scope = Literal["viewport", "document"]
ClickStrategy = Literal["cdp_mouse", "dom_click"]
TypeStrategy = Literal["cdp_key", "dom_input"]
TabId = Annotated[
    Whole, Field(alias="tabId", ge=0, le=LARGEST_NUMBER, description="As task_start returned it.")
]
ClickId = Annotated[
    Whole | None,
    Field(alias="clickId", ge=1, le=LARGEST_NUMBER, description="As an index returned it."),
]
XPath = Annotated[
    StrictStr | None,
    Field(
        min_length=1,
        max_length=LONGEST_XPATH,
        description="Where there is no clickId, or its element is gone. ` >> ` leads into a frame"
        " or a shadow root; in a shadow root steps are /tag[n].",
    ),
]
Within = Annotated[
    Scope,
    Field(description="viewport: what is in view. document: also what has to be scrolled to."),
]


class TaskStart(Closed):
    """The page that a task begins on."""

    url: StrictStr | None = Field(
        default=None, description="An http or https address; an empty page unless given."
    )
    reuse_existing_tab: StrictBool = Field(
        default=False,
        alias="reuseExistingTab",
        description="Go on in the task's tab where it has one, instead of in a new one.",
    )
    group_title: StrictStr | None = Field(
        default=None,
        alias="groupTitle",
        max_length=200,
        description="What to call the group of tabs, in browsers that have groups.",
    )


class BrowserDebuggerAttach(Closed):
    """The tab whose mouse and keyboard are wanted."""

    tab_id: TabId


class TaskStop(Closed):
    """Whether the tab goes with the task."""

    close_tab: StrictBool = Field(default=False, alias="closeTab")


class BrowserWaitForLoaded(Closed):
    """Which tab to wait for, and for how long."""

    tab_id: TabId
    timeout_ms: Whole = Field(default=20_000, ge=1, le=20_000, alias="timeoutMs")


class BrowserScreenshot(Closed):
    """Which tab to picture."""

    tab_id: TabId
    full_page: StrictBool = Field(
        default=False, alias="fullPage", description="The whole page, not its visible part alone."
    )


class BrowserReadabilityExtract(Closed):
    """Which tab to read."""

    tab_id: TabId


class BrowserDomIndex(Closed):
    """Which elements to number."""

    tab_id: TabId
    scope: Within = "document"
    assign_attr: StrictStr = Field(
        default=CLICK_ATTRIBUTE,
        alias="assignAttr",
        pattern=r"^data-[a-z0-9][a-z0-9_.-]{0,59}$",
        description="The attribute in which the page is given each number.",
    )


class BrowserXpathScan(Closed):
    """Which elements to find XPaths of."""

    tab_id: TabId
    scope: Within = "document"


class BrowserClick(Closed):
    """What to click, and by what."""

    tab_id: TabId
    click_id: ClickId = None
    xpath: XPath = None
    strategy: ClickStrategy = "cdp_mouse"

    @model_validator(mode="after")
    def _names_something(self) -> BrowserClick:
        if self.click_id is None and self.xpath is None:
            raise ValueError("give clickId or xpath")
        return self


class BrowserType(Closed):
    """What to write, and where."""

    tab_id: TabId
    xpath: XPath = None
    click_id: ClickId = None
    text: StrictStr = Field(
        max_length=LONGEST_TEXT,
        description="Takes the place of what the field holds: text, the label of an option, true"
        " or false for a box, YYYY-MM-DD for a date.",
    )
    submit: StrictBool = Field(default=False, description="Press Enter in the field afterwards.")
    strategy: TypeStrategy = "cdp_key"


class BrowserGetHtml(Closed):
    """Which markup to keep."""

    tab_id: TabId
    xpath: XPath = None
