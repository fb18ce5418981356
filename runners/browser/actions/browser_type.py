"""The action `browser_type`: fill a field of the task's page."""

from __future__ import annotations

from runners.actions.catalogue import TYPE
from runners.actions.judged import FIELD_LOCATE_MS
from runners.actions.parameters import BrowserType, TypeStrategy
from runners.actions.registration import action
from runners.actions.results import Typed
from runners.browser.input.cdp_input import NotDispatched, connection_lost
from runners.browser.input.interactor import Interactor
from runners.browser.input.locator import LocatedElement
from runners.browser.parameters import ElementReference
from runners.browser.reading import page_watch
from runners.browser.tabs.task_input import send_input
from runners.browser.tabs.task_tab import task_tab
from runners.errors import ElementNotFound, PageCrashed
from runners.tools.base import ToolContext

NO_EFFECT = (
    "After Enter the page requested nothing and shows nothing new. If it was to search or to send,"
    " click the button for that."
)
BY_SCRIPT = frozenset({"choice", "set"})  # options, dates, sliders: their keys are not uniform


@action(TYPE)
async def browser_type(args: BrowserType, ctx: ToolContext) -> Typed:
    """Replace the text of a field of the task's page, by its clickId or XPath, or without both in
    the field that has the focus; with `submit`, press Enter there.

    The text also selects options, sets checkboxes and dates. The keyboard is real unless `strategy`
    is dom_input, the field accepts no keys, or real input is not available: then `warnings` say so.
    `warnings` also say if the page changed the text, or if Enter started nothing.
    """
    target = ElementReference.of(args)
    is_secret = ctx.mask(args.text) != args.text

    async def fill(interactor: Interactor) -> tuple[str, list[str]]:
        try:
            field, warnings = await interactor.fill(target, args.text, is_secret=is_secret)
            if args.submit:
                warnings += await _submit(interactor, field, args.text)
        except PageCrashed as lost:
            if interactor.tab.is_alive:
                return "text", [_navigation_warning(lost, str(target))]
            raise
        return field.way, warnings

    async with task_tab(ctx, args.tab_id) as task:
        sent = await send_input(
            task,
            ctx,
            fill,
            is_real=args.strategy == "cdp_key",
            locate_ms=FIELD_LOCATE_MS,
            dialog=args.dialog,
        )
    by_keys = sent.is_real and sent.result not in BY_SCRIPT
    strategy: TypeStrategy = "cdp_key" if by_keys else "dom_input"
    return Typed(strategy=strategy, downloads=sent.downloads, warnings=sent.warnings)


async def _submit(interactor: Interactor, field: LocatedElement, text: str) -> list[str]:
    """Press Enter in the field that was filled; return a warning if that started nothing.

    Raises as `Interactor.press_key`, and CdpLost.
    """
    async with page_watch.watched_input(interactor.tab) as has_effect:
        try:
            await interactor.press_key("Enter", field)
        except NotDispatched:  # else the field would be filled again without real input
            raise connection_lost() from None
        return [] if await has_effect(text) else [NO_EFFECT]


def _navigation_warning(lost: PageCrashed, target: str) -> str:
    """Return the warning that the page navigated because of the text (a self-submitting code, say).

    Raises:
        ElementNotFound: It navigated before anything was typed.
    """
    if lost.details.get("effect") == "none":
        raise ElementNotFound(
            f"The element for {target} is gone: the page navigated to another document.",
            details={"reason": "gone", "effect": "none"},
        )
    return "The page navigated to another document during the typing."
