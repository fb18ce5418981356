"""The parameters of the browser actions (S1 §4.2), in camelCase; unknown keys are rejected."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictStr, model_validator

from runners.tools.base import AS_WHOLE, Closed, Whole

MAX_TEXT_LENGTH = 50_000
MAX_XPATH_LENGTH = 2000
MAX_SAFE_INTEGER = 2**53 - 1  # larger ones lose precision in JSON
CLICK_ATTRIBUTE = "data-mimo_click_id"

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
        description="Used if there is no clickId, or its element is gone. ` >> ` enters a frame or"
        " a shadow root; in a shadow root steps are /tag[n].",
    ),
]
Within = Annotated[
    Scope,
    Field(description="viewport: what is in view. document: also what needs scrolling."),
]


class DialogChoice(Closed):
    """Whether to accept a question of the page; `text` answers a prompt, else its default does."""

    accept: StrictBool
    text: StrictStr | None = Field(default=None, max_length=2000)


Dialog = Annotated[
    DialogChoice | None,
    Field(
        description="Answer to the question (confirm, prompt) that the page asks because of this"
        " action; without it, such questions are dismissed."
    ),
]


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


class BrowserDebuggerAttach(Closed):
    """The tab to attach to for mouse and keyboard input."""

    tab_id: TabId


class TaskStop(Closed):
    """Whether to close the tab with the task."""

    close_tab: StrictBool = Field(default=False, alias="closeTab")


class BrowserWaitForLoaded(Closed):
    """Which tab to wait for, and for how long."""

    tab_id: TabId
    timeout_ms: Whole = Field(default=20_000, ge=1, le=20_000, alias="timeoutMs")


class BrowserScreenshot(Closed):
    """Which tab to take a screenshot of."""

    tab_id: TabId
    full_page: StrictBool = Field(
        default=False, alias="fullPage", description="The whole page instead of its visible part."
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
        description="The attribute that holds each element's number on the page.",
    )


class BrowserXpathScan(Closed):
    """Which elements to list with their XPaths."""

    tab_id: TabId
    scope: Within = "document"


class BrowserClick(Closed):
    """What to click, and how."""

    tab_id: TabId
    click_id: ClickId = None
    xpath: XPath = None
    strategy: ClickStrategy = "cdp_mouse"
    dialog: Dialog = None

    @model_validator(mode="after")
    def _has_target(self) -> BrowserClick:
        if self.click_id is None and self.xpath is None:
            raise ValueError("give clickId or xpath")
        return self


class BrowserType(Closed):
    """What to type, and where."""

    tab_id: TabId
    xpath: XPath = None
    click_id: ClickId = None
    text: StrictStr = Field(
        max_length=MAX_TEXT_LENGTH,
        description="Replaces what the field contains: text, the label of an option, true or false"
        " for a checkbox, YYYY-MM-DD for a date.",
    )
    submit: StrictBool = Field(default=False, description="Press Enter in the field afterwards.")
    strategy: TypeStrategy = "cdp_key"
    dialog: Dialog = None


class BrowserGetHtml(Closed):
    """Which markup to save."""

    tab_id: TabId
    xpath: XPath = None
