"""The action `browser_press_key`: press a key on the task's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import PRESS_KEY
from runners.actions.parameters import BrowserPressKey
from runners.actions.registration import action
from runners.actions.results import KeyPressed
from runners.browser.input.gestures import press_keys
from runners.browser.parameters import ElementReference
from runners.browser.tabs.input_strategy import with_input_strategy
from runners.browser.tabs.stored_downloads import store_downloads
from runners.browser.tabs.task_tab import page_notices, task_tab
from runners.tools.base import ToolContext

LOCATE_MS = 2000


@action(PRESS_KEY, kind="browser")
async def browser_press_key(args: BrowserPressKey, ctx: ToolContext) -> Mapping[str, Any]:
    """Press a key on the task's page, in an element (clickId or xpath) or where the focus is. Enter
    may submit a form. To write text, use browser_type.
    """
    target = ElementReference.model_validate({"clickId": args.click_id, "xpath": args.xpath})
    has_target = args.click_id is not None or args.xpath is not None
    async with task_tab(ctx, args.tab_id) as task:
        (focus, key_warnings), by_cdp, warnings = await with_input_strategy(
            task,
            ctx,
            lambda interactor: press_keys(
                interactor, target if has_target else None, args.key, args.times
            ),
            by_cdp=True,
            locate_ms=LOCATE_MS,
            dialog=args.dialog,
        )
        downloads, download_warnings = await store_downloads(task, ctx)
        warnings += key_warnings + download_warnings + page_notices(task, ctx)
    return KeyPressed(
        strategy="cdp_key" if by_cdp else "dom_events",
        focus=ctx.mask(focus),
        downloads=downloads,
        warnings=warnings,
    ).as_output()
