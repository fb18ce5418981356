"""The action `browser_find_text`: find text on the task's page."""

from __future__ import annotations

from runners.actions.catalogue import FIND_TEXT
from runners.actions.parameters import CLICK_ATTRIBUTE, BrowserFindText
from runners.actions.registration import action
from runners.actions.results import TextFound
from runners.browser.tabs.element_index import run_in_all_roots
from runners.browser.tabs.task_tab import check_page_address, task_tab
from runners.tools.base import ToolContext


@action(FIND_TEXT)
async def browser_find_text(args: BrowserFindText, ctx: ToolContext) -> TextFound:
    """Find visible text on the task's whole page. Returns the number of matches and the first 20,
    each with the text around it, its screen, and the clickId of the nearest usable element.
    """
    given = {"text": args.text, "scroll": args.scroll, "attribute": CLICK_ATTRIBUTE}
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        answer = await run_in_all_roots(task, ctx, "findText", lambda: given)
        check_page_address(task.tab.page.url, ctx)
    found = {"total": answer["total"], "matches": answer["matches"]}
    return TextFound.model_validate(found)
