"""The action `browser_wait_for_text`: wait until a text is shown on the task's page, or gone."""

from __future__ import annotations

import time
from typing import Any

from runners.actions.catalogue import WAIT_FOR_TEXT
from runners.actions.errors import TextNotShown
from runners.actions.parameters import BrowserWaitForText
from runners.actions.registration import action
from runners.actions.results import TextAwaited
from runners.browser.tabs.element_index import run_in_all_roots
from runners.browser.tabs.run_tab import RESERVE_SECONDS
from runners.browser.tabs.task_tab import check_page_address, page_notices, task_tab
from runners.tools.base import ToolContext

ANSWER_SECONDS = 1.0  # of the action's time, for the page's answer after the waiting


@action(WAIT_FOR_TEXT)
async def browser_wait_for_text(args: BrowserWaitForText, ctx: ToolContext) -> TextAwaited:
    """Wait until a visible text appears on the task's page or a page to which it navigates, or with
    `gone` until it disappears. Fails with NAVIGATION_TIMEOUT after `timeoutMs`.
    """
    most = max(0.1, ctx.seconds_left() - RESERVE_SECONDS - ANSWER_SECONDS)
    until = time.monotonic() + min(args.timeout_ms / 1000, most)

    def given() -> dict[str, Any]:
        left_ms = max(0, round((until - time.monotonic()) * 1000))
        return {"text": args.text, "gone": args.gone, "timeoutMs": left_ms}

    async with task_tab(ctx, args.tab_id) as task:
        await task.wait_for_navigation(until)
        answer = await run_in_all_roots(task, ctx, "waitForText", given)
        url = task.tab.page.url
        check_page_address(url, ctx)
        if not answer["isMet"]:
            state = "still on" if args.gone else "not on"
            raise TextNotShown(
                f"The text “{args.text[:100]}” is {state} the page after the time to wait.",
                details={"reason": "text", "url": url},
            )
        warnings = page_notices(task, ctx)
    gone = True if args.gone else None
    return TextAwaited(found=not args.gone, gone=gone, warnings=warnings)
