"""The action `browser_press_key`: press a key on the task's page."""

from __future__ import annotations

from runners.actions.catalogue import PRESS_KEY
from runners.actions.parameters import BrowserPressKey
from runners.actions.registration import action
from runners.actions.results import KeyPressed
from runners.browser.input.gestures import press_keys
from runners.browser.parameters import ElementReference
from runners.browser.tabs.task_input import send_input
from runners.browser.tabs.task_tab import task_tab
from runners.tools.base import ToolContext


@action(PRESS_KEY)
async def browser_press_key(args: BrowserPressKey, ctx: ToolContext) -> KeyPressed:
    """Press a key on the task's page, in an element (clickId or xpath) or where the focus is. Enter
    may submit a form. To write text, use browser_type.
    """
    target = ElementReference.of(args)
    async with task_tab(ctx, args.tab_id) as task:
        sent = await send_input(
            task,
            ctx,
            lambda interactor: press_keys(
                interactor, target if args.points else None, args.key, args.times
            ),
            dialog=args.dialog,
        )
    return KeyPressed(
        strategy="cdp_key" if sent.is_real else "dom_events",
        focus=ctx.mask(sent.result),
        downloads=sent.downloads,
        warnings=sent.warnings,
    )
