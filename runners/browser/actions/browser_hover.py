"""The action `browser_hover`: move the mouse over an element of the task's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import HOVER
from runners.actions.parameters import BrowserHover
from runners.actions.registration import action
from runners.actions.results import Hovered
from runners.browser.input.gestures import hover
from runners.browser.parameters import ElementReference
from runners.browser.tabs.input_strategy import with_input_strategy
from runners.browser.tabs.task_tab import page_notices, task_tab
from runners.tools.base import ToolContext

LOCATE_MS = 2000


@action(HOVER, kind="browser")
async def browser_hover(args: BrowserHover, ctx: ToolContext) -> Mapping[str, Any]:
    """Move the mouse over an element of the task's page, for menus and hints that appear then."""
    target = ElementReference.model_validate({"clickId": args.click_id, "xpath": args.xpath})
    async with task_tab(ctx, args.tab_id) as task:
        _, by_cdp, warnings = await with_input_strategy(
            task,
            ctx,
            lambda interactor: hover(interactor, target),
            by_cdp=True,
            locate_ms=LOCATE_MS,
        )
        warnings += page_notices(task, ctx)
    return Hovered(strategy="cdp_mouse" if by_cdp else "dom_events", warnings=warnings).as_output()
