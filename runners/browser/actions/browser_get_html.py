"""The action `browser_get_html`: save the markup of the task's page."""

from __future__ import annotations

from runners.actions.catalogue import GET_HTML
from runners.actions.parameters import BrowserGetHtml
from runners.actions.registration import action
from runners.actions.results import HtmlSaved
from runners.actions.uploaded_files import MAX_BYTES
from runners.browser.input.locator import require_found
from runners.browser.parameters import ElementReference
from runners.browser.tabs.artifacts import store_artifact, too_large
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.browser.tabs.task_tab import TaskTab, check_page_address, task_tab
from runners.tools.base import ToolContext


@action(GET_HTML)
async def browser_get_html(args: BrowserGetHtml, ctx: ToolContext) -> HtmlSaved:
    """Save the current markup of the task's page, or of the first element that an XPath matches, as
    an artifact. It includes open shadow roots. The values of secret fields are masked.
    """
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        markup = await _markup(task, args.xpath, ctx)
        url = task.tab.page.url
        check_page_address(url, ctx)
        artifact_id = await store_artifact(
            ctx, markup.encode(), name="page.html", mime_type="text/html", kind="file"
        )
        return HtmlSaved(artifactId=artifact_id, url=url)


async def _markup(task: TaskTab, xpath: str | None, ctx: ToolContext) -> str:
    answer = await task.tab.run_in_documents(
        "markup",
        lambda: {"xpath": xpath, "maxLength": MAX_BYTES},
        lambda: max(0.1, ctx.seconds_left() - RESERVE_SECONDS),
    )
    require_found(answer, ElementReference(xpath=xpath), task.tab.page.url)
    if "length" in answer:
        raise too_large("page.html", answer["length"])
    return str(answer["html"])
