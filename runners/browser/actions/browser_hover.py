"""The action `browser_hover`: move the mouse over an element of the task's page."""

from __future__ import annotations

from runners.actions.catalogue import HOVER
from runners.actions.parameters import BrowserHover
from runners.actions.registration import action
from runners.actions.results import Hovered, MouseStrategy
from runners.browser.input.gestures import hover
from runners.browser.parameters import ElementReference
from runners.browser.tabs.task_input import send_input
from runners.browser.tabs.task_tab import task_tab
from runners.tools.base import ToolContext


@action(HOVER)
async def browser_hover(args: BrowserHover, ctx: ToolContext) -> Hovered:
    """Move the mouse over an element of the task's page, for menus and hints that appear then."""
    target = ElementReference.of(args)
    async with task_tab(ctx, args.tab_id) as task:
        sent = await send_input(
            task, ctx, lambda interactor: hover(interactor, target), may_download=False
        )
    strategy: MouseStrategy = "cdp_mouse" if sent.is_real else "dom_events"
    return Hovered(strategy=strategy, warnings=sent.warnings)
