"""The action `browser_dom_index`: list and number the usable elements."""

from __future__ import annotations

from runners.actions.catalogue import DOM_INDEX
from runners.actions.parameters import BrowserDomIndex
from runners.actions.registration import action
from runners.actions.results import DomIndex
from runners.browser.tabs.element_index import index_elements
from runners.browser.tabs.task_tab import check_page_address, task_tab
from runners.tools.base import ToolContext


@action(DOM_INDEX)
async def browser_dom_index(args: BrowserDomIndex, ctx: ToolContext) -> DomIndex:
    """List the elements of the task's page that can be clicked or filled now, each with its clickId
    for browser_click and browser_type; including frames of the same origin and shadow roots.
    Hidden, disabled and covered elements are omitted. An element keeps its clickId while it exists,
    and no other element ever gets it.
    """
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        elements, warnings = await index_elements(
            task, ctx, mode="mark", scope=args.scope, attribute=args.assign_attr
        )
        check_page_address(task.tab.page.url, ctx)
        return DomIndex.model_validate({"elements": elements, "warnings": warnings})
