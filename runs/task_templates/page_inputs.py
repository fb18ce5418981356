"""Input fields and result schemas that the templates for one page share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from runners.browser.parameters import ExtractOptions

StartUrl = Annotated[
    str, Field(min_length=1, max_length=8192, description="The http(s) URL to start at.")
]
Extract = Annotated[
    ExtractOptions | None,
    Field(description="How much of the page to return; by default elements and text, shortened."),
]
STEP_MS = 200_000  # a wait of up to 120 s, and what happens before and after it
FINAL_PAGE: Mapping[str, Any] = {
    "type": "object",
    "description": "The page on which the run ended.",
    "properties": {
        "url": {"type": "string"},
        "title": {"type": "string"},
        "pageType": {"type": "string"},
        "httpStatus": {"type": ["integer", "null"]},
    },
    "required": ["url", "title"],
}
PAGE_INFO: Mapping[str, Any] = {
    "type": ["object", "null"],
    "description": "page, elements[] by position, totalElements, truncated; null if not requested.",
}
CONTENT: Mapping[str, Any] = {
    "type": ["object", "null"],
    "description": "sections[] {heading, level, text}, truncated; null if not requested.",
}


def extract_of(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return {extract} as the argument of a reading tool, or {} if the inputs have none."""
    return {"extract": inputs["extract"]} if inputs.get("extract") else {}


def final_page(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result's `finalPage` for the page that was read last."""
    return {key: page.get(key) for key in ("url", "title", "pageType", "httpStatus")}
