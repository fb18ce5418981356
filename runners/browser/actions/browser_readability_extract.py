"""The action `browser_readability_extract`: read the text of the task's page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from runners.actions.catalogue import READABILITY
from runners.actions.parameters import BrowserReadabilityExtract
from runners.actions.readability import TEXT_LIMIT_BYTES, is_inline
from runners.actions.registration import action
from runners.actions.results import PageText
from runners.browser.parameters import ExtractOptions
from runners.browser.reading.page_reader import PageReader
from runners.browser.tabs.artifacts import store_artifact
from runners.browser.tabs.task_tab import check_page_address, task_tab
from runners.tools.base import ToolContext, Whole


class WholeText(ExtractOptions):
    """Content options for the largest allowed text, plus one character to detect a longer one."""

    max_content_length: Whole = Field(default=TEXT_LIMIT_BYTES + 1, alias="maxContentLength")


WHOLE_TEXT = WholeText.model_validate({"pageInfo": False})


@action(READABILITY)
async def browser_readability_extract(
    args: BrowserReadabilityExtract, ctx: ToolContext
) -> PageText:
    """Return the text of the task's page as markdown, without menus, footers and cookie bars. Text
    of 262144 bytes or more is only stored as an artifact, and `truncated` is true; above 2097152
    bytes the action fails with READABILITY_TOO_LARGE.
    """
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        page = await PageReader(WHOLE_TEXT, None, ctx.deadline, grace=0.0).read_current(task.tab)
        check_page_address(page["url"], ctx)
        markdown = markdown_of(page["content"]["sections"])
        data = markdown.encode()
        is_truncated = page["content"]["truncated"]
        result = PageText(
            title=page["title"] or None,
            pageType=page["pageType"],
            contentLengthBytes=len(data),
            warnings=page["warnings"],
        )
        if is_inline(TEXT_LIMIT_BYTES + 1 if is_truncated else len(data)):
            return result.model_copy(update={"markdown": markdown})
        artifact_id = await store_artifact(
            ctx, data, name="page.md", mime_type="text/markdown", kind="file"
        )
        stored = {"artifact_id": artifact_id, "truncated": True}
        return result.model_copy(update=stored)


def markdown_of(sections: Iterable[Mapping[str, Any]]) -> str:
    """Return sections as one markdown text, each under its heading."""
    blocks = []
    for section in sections:
        if section["heading"]:
            blocks.append(f"{'#' * max(1, section['level'])} {section['heading']}")
        if section["text"]:
            blocks.append(section["text"])
    return "\n\n".join(blocks)
