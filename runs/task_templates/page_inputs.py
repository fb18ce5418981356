"""Input fields and result schemas that the page templates share, and how they read a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from django.utils.translation import gettext_noop as _
from pydantic import AfterValidator, Field

from runners.browser.parameters import ExtractOptions
from runners.errors import HttpErrorPage
from runs.task_templates.base import StepContext, StepView

# The start of an address with a scheme; `localhost:8000` has a port instead.
_SCHEME = re.compile(r"\s*[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)


def with_scheme(url: str) -> str:
    """Return an address that has a scheme; whether it may be opened is checked when it is.

    Raises:
        ValueError: It has none, as in `example.com/page`.
    """
    if not _SCHEME.match(url):
        raise ValueError(f"{url[:80]!r} has no scheme; write https:// or http:// before the host.")
    return url


PageUrl = Annotated[str, Field(min_length=1, max_length=8192), AfterValidator(with_scheme)]
StartUrl = Annotated[PageUrl, Field(description=_("The http(s) URL to start at."))]
Extract = Annotated[
    ExtractOptions | None,
    Field(
        description=_("How much of the page to return; by default elements and text, shortened.")
    ),
]
OnHttpError = Annotated[
    Literal["fail", "keep"],
    Field(
        alias="onHttpError",
        description=_(
            "A page with an HTTP error status (404, 500): fail, with details.httpStatus and"
            " the page's text in details.artifactId; or keep it as a page like any other."
        ),
    ),
]
STEP_MS = 200_000  # a wait of up to 120 s, and what happens before and after it
HTTP_STATUS: Mapping[str, Any] = {
    "type": ["integer", "null"],
    "description": "Over MCP left out where it is 200 or null.",
}
FINAL_PAGE: Mapping[str, Any] = {
    "type": "object",
    "description": "The page on which the run ended.",
    "properties": {
        "url": {"type": "string"},
        "title": {"type": "string"},
        "pageType": {"type": "string"},
        "httpStatus": HTTP_STATUS,
    },
    "required": ["url", "title"],
}
PAGE_INFO: Mapping[str, Any] = {
    "type": ["object", "null"],
    "description": "page, elements[] by position, totalElements, truncated; null if not requested."
    " Over MCP elements leaves out the links that content shows; linksInContent is their number.",
}
CONTENT: Mapping[str, Any] = {
    "type": ["object", "null"],
    "description": "sections[] {heading, level, text}, truncated; null if not requested. Text over"
    " maxContentLength is cut (truncated true): readOn {item, offset} are the arguments, with the"
    " result's artifactId, of the read_page_content call that reads on.",
}

# Of each page in a result, besides its url.
PAGE_RESULT: Mapping[str, Any] = {
    "title": {"type": ["string", "null"]},
    "pageType": {"type": ["string", "null"]},
    "elementCount": {"type": "integer"},
    "httpStatus": HTTP_STATUS,
    "pageInfo": PAGE_INFO,
    "content": CONTENT,
    "success": {"type": "boolean"},
    "error": {"type": ["object", "null"]},
}


def extract_of(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return {whole, extract?} as arguments of a reading tool: the run keeps the whole text."""
    return {"whole": True} | ({"extract": inputs["extract"]} if inputs.get("extract") else {})


def waiting_for(name: str, condition: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return {waitFor, conditionName} as arguments of read_current_page, for the condition in the
    input `name`; {} without one.
    """
    return {"waitFor": condition, "conditionName": name} if condition else {}


async def check_http_status(
    page: Mapping[str, Any], inputs: Mapping[str, Any], ctx: StepContext
) -> Mapping[str, Any]:
    """Return the page that a step read.

    Raises:
        HttpErrorPage: The server answered with an HTTP error status, and the inputs do not say to
            keep such a page; it is stored as an artifact.
    """
    status = page.get("httpStatus") or 200
    if status < 400 or inputs.get("onHttpError") == "keep":
        return page
    artifact_id = await ctx.store_output(page)
    raise HttpErrorPage(
        status,
        f"The server answered with HTTP status {status}: “{str(page.get('title'))[:200]}”.",
        details={
            "httpStatus": status,
            "url": page.get("url"),
            "title": str(page.get("title"))[:200],
            "artifactId": artifact_id,
        },
    )


async def open_start_page(
    url: str, condition: Mapping[str, Any] | None, ctx: StepContext, *, watches: bool = False
) -> dict[str, Any]:
    """Open the page that a form is on, and return it with `heldBefore`: whether the condition that
    is to show the form's success holds already; null without one that could show it.

    Args:
        watches: learn what the page requests and changes by itself, before anything is entered.
    """
    opened = await ctx.call("open_page", {"url": url})
    if watches:
        await ctx.call("watch_page", {"learns": True})
    if condition is None or condition["type"] == "stable":
        return {**opened, "heldBefore": None}
    found = await ctx.call("wait_for", {"condition": {**condition, "timeoutMs": 1}})
    return {**opened, "heldBefore": bool(found["met"])}


def held_before(steps: Sequence[StepView]) -> bool | None:
    """Return `heldBefore` of the first step, which opened the page."""
    held = (steps[0].output or {}).get("heldBefore")
    return held if isinstance(held, bool) else None


def status_of(page: Mapping[str, Any] | None, error: Mapping[str, Any] | None) -> int | None:
    """Return the HTTP status of a step's page, or of the page that its error is about."""
    source = page or (error or {}).get("details") or {}
    status = source.get("httpStatus")
    return status if isinstance(status, int) else None


def final_page(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result's `finalPage` for the page that was read last."""
    return {key: page.get(key) for key in ("url", "title", "pageType", "httpStatus")}
