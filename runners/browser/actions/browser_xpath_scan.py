"""The action `browser_xpath_scan`: list the usable elements with their XPaths."""

from __future__ import annotations

from runners.actions.catalogue import XPATH_SCAN
from runners.actions.parameters import CLICK_ATTRIBUTE, BrowserXpathScan
from runners.actions.registration import action
from runners.actions.results import XpathScan
from runners.browser.tabs.element_index import index_elements
from runners.browser.tabs.task_tab import check_page_address, task_tab
from runners.tools.base import ToolContext


@action(XPATH_SCAN)
async def browser_xpath_scan(args: BrowserXpathScan, ctx: ToolContext) -> XpathScan:
    """List the elements of the task's page that can be clicked or filled now, each with its XPath,
    for pages that keep replacing their elements. Nothing is written to the page. On other pages,
    prefer browser_dom_index.
    """
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        elements, warnings = await index_elements(
            task, ctx, mode="scan", scope=args.scope, attribute=CLICK_ATTRIBUTE
        )
        check_page_address(task.tab.page.url, ctx)
        return XpathScan.model_validate({"elements": elements, "warnings": warnings})
