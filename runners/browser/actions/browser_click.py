"""The action `browser_click`: click an element of the task's page."""

from __future__ import annotations

from runners.actions.catalogue import CLICK
from runners.actions.errors import CdpUnavailable
from runners.actions.parameters import BrowserClick, ClickStrategy
from runners.actions.registration import action
from runners.actions.results import Clicked
from runners.browser.input.dom_input import DomInput
from runners.browser.input.interactor import Interactor
from runners.browser.parameters import ElementReference
from runners.browser.tabs.task_input import send_input
from runners.browser.tabs.task_tab import task_tab
from runners.tools.base import ToolContext


@action(CLICK)
async def browser_click(args: BrowserClick, ctx: ToolContext) -> Clicked:
    """Click an element of the task's page once, by its clickId or XPath; or click a point of
    the last screenshot by x and y.

    The element is scrolled into view first. The action waits shortly until it stops moving and
    nothing covers it; no other element is ever clicked. What would open in a new tab opens in this
    one. A file that the click downloads is stored; if its `text` is truncated, read on in the
    artifact. The mouse is real unless `strategy` is dom_click, or real input is not available: then
    `warnings` say so. Fails with ELEMENT_NOT_FOUND if the element is gone, covered or disabled; for
    other failures, details.effect says whether anything was clicked.
    """
    async with task_tab(ctx, args.tab_id) as task:
        sent = await send_input(
            task,
            ctx,
            lambda interactor: _click(interactor, args, task.picture_scale),
            is_real=args.strategy == "cdp_mouse",
            dialog=args.dialog,
        )
    strategy: ClickStrategy = "cdp_mouse" if sent.is_real else "dom_click"
    return Clicked(strategy=strategy, downloads=sent.downloads, warnings=sent.warnings)


async def _click(
    interactor: Interactor, args: BrowserClick, scale: float
) -> tuple[None, list[str]]:
    if args.x is None or args.y is None:
        await interactor.click(ElementReference.of(args))
        return None, []
    if isinstance(interactor.device, DomInput):  # it clicks the element that was located last
        raise CdpUnavailable(
            "Real input is not available, and without it only elements can be clicked.",
            details={"effect": "none"},
        )
    await interactor.click_point(args.x / scale, args.y / scale)
    return None, []
