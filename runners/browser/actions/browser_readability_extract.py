"""The action `browser_readability_extract`: the text of the task's page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from runners.actions.catalogue import READABILITY
from runners.actions.parameters import BrowserReadabilityExtract
from runners.actions.readability import TEXT_LIMIT_BYTES, is_inline
from runners.actions.registration import action
from runners.actions.results import PageText
from runners.browser.action_support.artifacts import keep
from runners.browser.action_support.task_tab import check_page_address, task_tab
from runners.browser.interaction.page_reader import PageReader
from runners.browser.parameters import ExtractOptions
from runners.tools.base import ToolContext, Whole


class WholeText(ExtractOptions):
    """All the text that may be handed out, and one character more."""

    max_content_length: Whole = Field(default=TEXT_LIMIT_BYTES + 1, alias="maxContentLength")


WHOLE_TEXT = WholeText.model_validate({"pageInfo": False})


@action(READABILITY, kind="browser")
async def browser_readability_extract(
    args: BrowserReadabilityExtract, ctx: ToolContext
) -> Mapping[str, Any]:
    """Return the text of the task's page as markdown, without what frames it (menus, footers,
    cookie bars). From 262144 bytes on it is an artifact alone and `truncated`; above 2097152 bytes
    the action fails with READABILITY_TOO_LARGE.
    """
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        page = await PageReader(WHOLE_TEXT, None, ctx.deadline, grace=0.0).of_present(task.tab)
        check_page_address(page["url"], ctx)
        markdown = markdown_of(page["content"]["sections"])
        data = markdown.encode()
        is_cut = page["content"]["truncated"]
        told = PageText(
            title=page["title"] or None, contentLengthBytes=len(data), warnings=page["warnings"]
        )
        if is_inline(TEXT_LIMIT_BYTES + 1 if is_cut else len(data)):
            return told.model_copy(update={"markdown": markdown}).as_output()
        artifact_id = await keep(ctx, data, name="page.md", mime_type="text/markdown", kind="file")
        kept = {"artifact_id": artifact_id, "truncated": True}
        return told.model_copy(update=kept).as_output()


def markdown_of(sections: Iterable[Mapping[str, Any]]) -> str:
    """Return sections as one text, each under its heading."""
    blocks = []
    for section in sections:
        if section["heading"]:
            blocks.append(f"{'#' * max(1, section['level'])} {section['heading']}")
        if section["text"]:
            blocks.append(section["text"])
    return "\n\n".join(blocks)
