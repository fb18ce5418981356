"""The action `browser_type`: write into a field of the task's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import TYPE
from runners.actions.parameters import BrowserType
from runners.actions.registration import action
from runners.actions.results import Typed
from runners.browser.action_support.input_strategy import with_input_strategy
from runners.browser.action_support.task_tab import page_notices, task_tab
from runners.browser.interaction.interactor import Interactor
from runners.browser.parameters import ElementReference
from runners.errors import ElementNotFound, PageCrashed
from runners.tools.base import ToolContext

LOOKING_MS = 4000
BY_SCRIPT = frozenset({"choice", "set"})  # options, dates and sliders: no keys are the same for all


@action(TYPE, kind="browser")
async def browser_type(args: BrowserType, ctx: ToolContext) -> Mapping[str, Any]:
    """Write a text into a field of the task's page in place of what it holds, by its clickId, or by
    XPath, or by neither into the field that has the focus; with `submit`, press Enter there. To
    press Enter alone, write the same text once more.

    Options, boxes and dates are chosen by the text too. The keyboard is real unless `strategy` is
    dom_input, the field takes no keys, or real input cannot be had: `warnings` say so. A page that
    makes something else of the text is named in `warnings`.
    """
    meant = ElementReference.model_validate({"clickId": args.click_id, "xpath": args.xpath})
    is_secret = ctx.mask(args.text) != args.text

    async def write(hand: Interactor) -> tuple[str, list[str]]:
        try:
            aimed, warnings = await hand.fill(meant, args.text, is_secret=is_secret)
            if args.submit:
                await hand.press_key("Enter", aimed)
        except PageCrashed as lost:
            if hand.tab.is_alive:
                return "text", [_went_on(lost, str(meant))]
            raise
        return aimed.way, warnings

    async with task_tab(ctx, args.tab_id) as task:
        (way, told), by_cdp, warnings = await with_input_strategy(
            task, ctx, write, by_cdp=args.strategy == "cdp_key", looking_ms=LOOKING_MS
        )
        warnings += [ctx.mask(one) for one in told] + page_notices(task, ctx)
    by_keys = by_cdp and way not in BY_SCRIPT
    return Typed(strategy="cdp_key" if by_keys else "dom_input", warnings=warnings).as_output()


def _went_on(lost: PageCrashed, meant: str) -> str:
    """Return what is said of a page that went on to another document because of what was written,
    a code that sends itself, say.

    Raises:
        ElementNotFound: It did before anything was written.
    """
    if lost.details.get("effect") == "none":
        raise ElementNotFound(
            f"What had {meant} is gone: the page went on to another document.",
            details={"reason": "gone", "effect": "none"},
        )
    return "The page went on to another document while it was written in."
