"""The action `browser_drag`: drag an element of the task's page and drop it."""

from __future__ import annotations

from runners.actions.catalogue import DRAG
from runners.actions.parameters import BrowserDrag
from runners.actions.registration import action
from runners.actions.results import Dragged, MouseStrategy
from runners.browser.input.drag import drag
from runners.browser.parameters import ElementReference
from runners.browser.tabs.task_input import send_input
from runners.browser.tabs.task_tab import task_tab
from runners.tools.base import ToolContext


@action(DRAG)
async def browser_drag(args: BrowserDrag, ctx: ToolContext) -> Dragged:
    """Drag an element (clickId or xpath) of the task's page onto another (toClickId or toXpath), or
    by dx and dy pixels, and drop it. `warnings` say if the page did not accept it.
    """
    source = ElementReference.of(args)
    by_offset = args.to_click_id is None and args.to_xpath is None
    onto = ElementReference.model_validate({"clickId": args.to_click_id, "xpath": args.to_xpath})
    to = {"dx": args.dx or 0, "dy": args.dy or 0} if by_offset else onto
    async with task_tab(ctx, args.tab_id) as task:
        sent = await send_input(
            task, ctx, lambda interactor: drag(interactor, source, to), may_download=False
        )
    strategy: MouseStrategy = "cdp_mouse" if sent.is_real else "dom_events"
    return Dragged(strategy=strategy, warnings=sent.warnings)
