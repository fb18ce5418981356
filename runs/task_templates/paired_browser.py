"""Runs in a browser that the caller paired: the input that chooses it, and how a page is read there
with browser actions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from django.utils.translation import gettext_noop as _
from pydantic import Field

from runners.actions.catalogue import (
    DOM_INDEX,
    OBSERVE,
    READABILITY,
    TASK_START,
    TASK_STOP,
    WAIT_FOR_LOADED,
)
from runners.browser.parameters import ExtractOptions
from runs.task_templates.base import StepContext

SelectedClientId = Annotated[
    str | None,
    Field(
        alias="selectedClientId",
        min_length=1,
        max_length=64,
        description=_(
            "The browser that you paired, in which the run acts: its plc_… id, or plugin"
            " for the one that is connected. Default: a browser of the worker."
        ),
    ),
]
_HEADING = re.compile(r"(#{1,6}) (.+)")


async def read_in_paired_browser(
    url: str, inputs: Mapping[str, Any], ctx: StepContext, *, group_title: str
) -> dict[str, Any]:
    """Open a URL in the task's tab and return the page as the tool `read_page` does, as far as the
    browser actions show it.

    Raises:
        ToolFailed: The page cannot be opened or read.
    """
    extract = ExtractOptions.model_validate(inputs.get("extract") or {})
    start = {"url": url, "reuseExistingTab": True, "groupTitle": group_title}
    opened = await ctx.call(TASK_START.name, start)
    tab = {"tabId": opened["tabId"]}
    loaded = await ctx.attempt(WAIT_FOR_LOADED.name, tab)
    seen = await ctx.call(OBSERVE.name, tab)
    warnings = [*_warnings(opened), *_warnings(loaded.output or {}), *_warnings(seen)]
    if not loaded.ok:
        warnings.append(f"The page is read as it is: {(loaded.error or {}).get('message', '')}")
    page: dict[str, Any] = {
        "url": seen["url"],
        "title": seen["title"],
        "pageType": None,
        "httpStatus": seen.get("status"),
        "elementCount": seen["elements"],
        "contentSections": 0,
        "content": None,
        "pageInfo": None,
    }
    if not extract.content:
        page["pageType"] = ((await ctx.attempt(READABILITY.name, tab)).output or {}).get("pageType")
    else:
        text = await ctx.call(READABILITY.name, tab)
        warnings += _warnings(text)
        page["pageType"] = text.get("pageType")
        page["content"] = {"sections": list(_sections(str(text.get("markdown") or "")))}
        page["content"]["truncated"] = bool(text.get("truncated"))
        page["contentSections"] = len(page["content"]["sections"])
        if text.get("truncated"):
            warnings.append(f"The page's text is long: it is in the artifact {text['artifactId']}.")
    if extract.page_info:
        page["pageInfo"] = await _page_info(page, tab, extract.max_elements, ctx)
    return {**page, "warnings": warnings}


async def close_task_tabs(ctx: StepContext) -> dict[str, Any]:
    """End the task in the person's browser and close its tabs; a failure is no failure of the run,
    because a person may have closed them.
    """
    stopped = await ctx.attempt(TASK_STOP.name, {"closeTab": True})
    return {"closed": stopped.ok}


async def _page_info(
    page: Mapping[str, Any], tab: Mapping[str, Any], limit: int, ctx: StepContext
) -> dict[str, Any]:
    elements = (await ctx.call(DOM_INDEX.name, tab))["elements"]
    named = {"url": page["url"], "title": page["title"], "type": page["pageType"]}
    return {
        "page": named,
        "elements": elements[:limit],
        "totalElements": len(elements),
        "truncated": len(elements) > limit,
    }


def _warnings(output: Mapping[str, Any]) -> list[str]:
    return list(output.get("warnings", ()))


def _sections(markdown: str) -> Iterator[dict[str, Any]]:
    """Yield the sections of a page's text, each with its heading."""
    heading, level, lines = "", 0, list[str]()
    for line in markdown.split("\n"):
        found = _HEADING.fullmatch(line)
        if found is None:
            lines.append(line)
            continue
        if heading or "".join(lines).strip():
            yield {"heading": heading, "level": level, "text": "\n".join(lines).strip()}
        heading, level, lines = found[2].strip(), len(found[1]), []
    if heading or "".join(lines).strip():
        yield {"heading": heading, "level": level, "text": "\n".join(lines).strip()}
