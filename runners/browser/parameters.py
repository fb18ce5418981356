"""Parameter models that browser tools and templates share: extract, locator, wait condition."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictStr, model_validator
from pydantic.config import JsonDict

from runners.actions.parameters import MayPoint
from runners.tools.base import AS_WHOLE, Closed, Whole

# Part of the call's time that is not spent on waiting, so that a busy page is still read.
RESERVE_SECONDS = 2.0


class ExtractOptions(Closed):
    """What to read from a page, and how much."""

    page_info: StrictBool = Field(
        default=True, alias="pageInfo", description="Title, type, summary and the usable elements."
    )
    content: StrictBool = Field(
        default=True, description="The text, as sections under their headings."
    )
    max_elements: Whole = Field(
        default=50, ge=1, le=1000, alias="maxElements", description="Maximum number of elements."
    )
    max_content_length: Whole = Field(
        default=4000,
        ge=1,
        le=50_000,
        alias="maxContentLength",
        description="Maximum number of characters of content.",
    )


_TEXT: JsonDict = {"type": "string", "pattern": "\\S"}
_ABSENT: JsonDict = {"type": "null"}


class Locator(Closed):
    """Identifies an element: by a CSS selector, or by words that a person would use for it."""

    # Hosts accept conditions below the root of an advertised schema.
    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"mode": {"const": "selector"}}},
            "then": {
                "required": ["selector"],
                "properties": {"selector": _TEXT, "query": _ABSENT},
            },
            "else": {"required": ["query"], "properties": {"query": _TEXT, "selector": _ABSENT}},
        }
    )

    mode: Literal["selector", "semantic"] = Field(
        description="selector: CSS in `selector`. semantic: words in `query`, English or Chinese."
    )
    selector: StrictStr | None = Field(
        default=None,
        min_length=1,
        max_length=2000,
        description="With mode selector: a CSS selector; its first usable match is chosen.",
    )
    query: StrictStr | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="With mode semantic: words matched against role, accessible name, label,"
        " placeholder and text; the best candidate is chosen and reported.",
    )

    @model_validator(mode="after")
    def _has_its_own_field(self) -> Locator:
        wanted, other = ("selector", "query") if self.mode == "selector" else ("query", "selector")
        if not (getattr(self, wanted) or "").strip():
            raise ValueError(f"{wanted} is required with mode {self.mode}")
        if getattr(self, other) is not None:
            raise ValueError(f"{other} is not allowed with mode {self.mode}")
        return self

    def __str__(self) -> str:
        return f"the selector {self.selector}" if self.selector else f"the words “{self.query}”"


class ElementReference(Closed):
    """Identifies an element by clickId or XPath, or by both, which have to name the same one; else
    the field that has the focus. Once it was resolved, `node` is the name of that element; with
    `compares` it has to be as it was judged; None: this call was not judged by that element.
    """

    mode: Literal["pointed"] = "pointed"
    click_id: Whole | None = Field(default=None, alias="clickId")
    xpath: StrictStr | None = None
    node: StrictStr | None = None
    compares: bool | None = None

    @classmethod
    def of(cls, args: MayPoint) -> ElementReference:
        """Return the reference in the arguments of an action."""
        return cls.model_validate({"clickId": args.click_id, "xpath": args.xpath})

    def __str__(self) -> str:
        if self.click_id is not None:
            return f"the clickId {self.click_id}"
        return f"the XPath {self.xpath}" if self.xpath else "the field that has the focus"


class SearchButton(Closed):
    """Identifies the search button beside the field that was filled last."""

    mode: Literal["searchButton"] = "searchButton"

    def __str__(self) -> str:
        return "a search button beside the field"


Purpose = Literal["field", "clickable", "any"]
LocateTimeout = Annotated[
    int,
    Field(ge=0, le=60_000, description="How long to wait for an element that is not present yet."),
    AS_WHOLE,
]
LOCATE_MS = 5000


class WaitCondition(Closed):
    """A condition to wait for before the page is read; every type but `stable` needs `value`."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"type": {"const": "stable"}}},
            "else": {"required": ["value"], "properties": {"value": {"type": "string"}}},
        }
    )

    type: Literal["selector", "urlContains", "textIncludes", "stable"] = Field(
        description="A visible element, a part of the URL or text, or a page that stopped changing."
    )
    value: StrictStr | None = Field(
        default=None,
        min_length=1,
        max_length=2000,
        description="The selector, or the part of the URL or text; not for type stable.",
    )
    timeout_ms: Whole = Field(
        default=10_000, ge=1, le=120_000, alias="timeoutMs", description="How long to wait for it."
    )

    @model_validator(mode="after")
    def _has_value(self) -> WaitCondition:
        if self.type != "stable" and self.value is None:
            raise ValueError(f"value is required for type {self.type}")
        return self
