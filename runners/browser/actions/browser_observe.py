"""The action `browser_observe`: what the task's page shows, as text for a model."""

from __future__ import annotations

from runners.actions.catalogue import OBSERVE
from runners.actions.parameters import CLICK_ATTRIBUTE, BrowserObserve
from runners.actions.registration import action
from runners.actions.results import PageObservation
from runners.browser.tabs.element_index import run_in_all_roots
from runners.browser.tabs.task_tab import check_page_address, task_tab
from runners.tools.base import ToolContext

PARSE_MS, IDLE_MS = 3_000, 2_000  # how long a page that is still loading or changing is waited for


@action(OBSERVE)
async def browser_observe(args: BrowserObserve, ctx: ToolContext) -> PageObservation:
    """Return what the task's page shows, in the order of the page: headings, texts, and a line for
    each usable element, such as `[18] input email "Mail" = "" required`. The number is the clickId
    for browser_click and browser_type; a star marks elements that are new since the last
    observation. A long page is cut: what is in view comes first, and `cut.next` is the `from` to
    read on with.
    """
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        options = {
            "attribute": CLICK_ATTRIBUTE,
            "start": args.start,
            "full": args.full,
            "withBoxes": args.boxes,
            "settle": {"parseMs": PARSE_MS, "idleMs": IDLE_MS},
        }
        page = await run_in_all_roots(task, ctx, "observe", lambda: options)
        check_page_address(page["url"], ctx)
        events = {} if args.start is not None else task.events.take()
        masked = {kind: [ctx.mask(text) for text in texts] for kind, texts in events.items()}
        return PageObservation(
            url=page["url"],
            title=page["title"],
            status=page["status"],
            viewport=page["viewport"],
            scroll=page["scroll"],
            text=ctx.mask(page["text"]),
            elements=page["elements"],
            cut=page["cut"],
            **masked,
        )
