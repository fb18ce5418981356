"""The action `browser_scroll`: scroll the task's page, or an area of it."""

from __future__ import annotations

from typing import Any

from runners.actions.catalogue import SCROLL
from runners.actions.parameters import BrowserScroll
from runners.actions.registration import action
from runners.actions.results import Scrolled
from runners.browser.input.locator import require_found
from runners.browser.parameters import ElementReference
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.browser.tabs.task_tab import TaskTab, check_page_address, task_tab
from runners.tools.base import ToolContext

SETTLE_SECONDS = 2.5  # of the action's time, for the page's answer after the last movement
_STOPPED = {
    "screens": "The scrolling ended after {screens} screens; there is more below.",
    "time": "The scrolling ended after {screens} screens, because its time was up; there may be"
    " more below.",
}


@action(SCROLL)
async def browser_scroll(args: BrowserScroll, ctx: ToolContext) -> Scrolled:
    """Scroll the task's page: by `screens`, `to` an end, or `untilNothingNew`. An element (clickId
    or xpath) alone is scrolled into view; with one of these, the list around it is scrolled.
    """
    async with task_tab(ctx, args.tab_id, settled=True) as task:
        answer = await _scroll(task, args, ctx)
        check_page_address(task.tab.page.url, ctx)
    stopped = answer.pop("stopped", "")
    warnings = [_STOPPED[stopped].format(screens=answer["screens"])] if stopped else []
    return Scrolled.model_validate({**answer, "warnings": warnings})


async def _scroll(task: TaskTab, args: BrowserScroll, ctx: ToolContext) -> dict[str, Any]:
    target = ElementReference.of(args)

    def seconds_left() -> float:
        return max(0.1, ctx.seconds_left() - RESERVE_SECONDS)

    def request() -> dict[str, Any]:
        return {
            "locator": target.model_dump() if args.points else None,
            "screens": args.screens,
            "to": args.to,
            "untilNothingNew": args.until_nothing_new,
            "maxScreens": args.max_screens,
            "timeoutMs": round(max(0.1, seconds_left() - SETTLE_SECONDS) * 1000),
        }

    answer = await task.tab.run_in_documents("scroll", request, seconds_left)
    require_found(answer, target, task.tab.page.url)
    return answer
