"""Inputs and parts of results that templates working on one page have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from runners.browser.parameters import ExtractOptions

StartUrl = Annotated[
    str, Field(min_length=1, max_length=8192, description="The http(s) address to begin at.")
]
Extract = Annotated[
    ExtractOptions | None,
    Field(description="How much of the page to return; by default elements and text, shortened."),
]
STEP_MS = 200_000  # a wait of 120 s and what comes before and after it
FINAL_PAGE: Mapping[str, Any] = {
    "type": "object",
    "description": "Where the run ended.",
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
    "description": "page, elements[] by position, totalElements, truncated; null if not asked for.",
}
CONTENT: Mapping[str, Any] = {
    "type": ["object", "null"],
    "description": "sections[] {heading, level, text}, truncated; null if not asked for.",
}


def extract_of(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the argument `extract` of a reading tool, where the inputs have one."""
    return {"extract": inputs["extract"]} if inputs.get("extract") else {}


def final_page(read: Mapping[str, Any]) -> dict[str, Any]:
    """Return `finalPage` of a page that was read."""
    return {key: read.get(key) for key in ("url", "title", "pageType", "httpStatus")}
