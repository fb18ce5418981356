"""The action `browser_get_html`: keep the markup of the task's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import GET_HTML
from runners.actions.parameters import BrowserGetHtml
from runners.actions.registration import action
from runners.actions.results import HtmlSaved
from runners.browser.action_support.artifacts import MAX_BYTES, keep, too_large
from runners.browser.action_support.task_tab import TaskTab, check_page_address, task_tab
from runners.browser.errors import ContextLost
from runners.browser.interaction.locator import ask
from runners.browser.interaction.run_tab import RESERVE_SECONDS
from runners.errors import ElementNotFound, InvalidTarget, NavigationTimeout
from runners.tools.base import ToolContext

DOCUMENTS = 3


@action(GET_HTML, kind="browser")
async def browser_get_html(args: BrowserGetHtml, ctx: ToolContext) -> Mapping[str, Any]:
    """Keep the markup of the task's page as it is now, or of the first element that an XPath leads
    to, as an artifact; open shadow roots are part of it. What secret fields hold is masked.
    """
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        markup = await _markup(task, args.xpath, ctx)
        url = task.tab.page.url
        check_page_address(url, ctx)
        artifact_id = await keep(
            ctx, markup.encode(), name="page.html", mime_type="text/html", kind="file"
        )
        return HtmlSaved(artifactId=artifact_id, url=url).as_output()


async def _markup(task: TaskTab, xpath: str | None, ctx: ToolContext) -> str:
    for _ in range(DOCUMENTS):
        seconds = max(0.1, ctx.seconds_left() - RESERVE_SECONDS)
        try:
            given = {"xpath": xpath, "maxLength": MAX_BYTES}
            answer = await ask(task.tab, "markup", given, seconds=seconds)
        except ContextLost:
            continue
        if answer.get("problem") == "bad_xpath":
            raise InvalidTarget(f"xpath: {xpath} is not an XPath of elements.")
        if "problem" in answer:
            raise ElementNotFound(
                f"Nothing on the page fits the XPath {xpath}.",
                details={"reason": answer["problem"], "xpath": xpath, "url": task.tab.page.url},
            )
        if "length" in answer:
            raise too_large("page.html", answer["length"])
        return str(answer["html"])
    raise NavigationTimeout(
        "The page keeps going on to another document.", details={"url": task.tab.page.url}
    )
