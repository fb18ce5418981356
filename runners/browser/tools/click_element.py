"""The tool `click_element`: click an element of the run's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from runners.actions.parameters import DialogChoice
from runners.browser.parameters import LOCATE_MS, LocateTimeout, Locator
from runners.browser.tabs.run_tab import answer_next_dialog, interactor_for, lease_run_tab
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

MAX_DIALOGS = 5  # that are reported


class ClickElement(Closed):
    """What to click."""

    locator: Locator
    timeout_ms: LocateTimeout = Field(default=LOCATE_MS, alias="timeoutMs")


@tool("click_element", kind="browser", effect=Effect.ONCE, timeout_ms=80_000)
async def click_element(args: ClickElement, ctx: ToolContext) -> Mapping[str, Any]:
    """Click a button, a link or another element of the run's page with the mouse, once.

    It waits until the element is in view, enabled, not moving and not covered. What would open in a
    new tab opens in this one. Returns match {type, label, score, by, matched, equals} right after
    the click; read_current_page and wait_for wait for its effect.
    """
    return await click(args.locator, ctx, timeout_ms=args.timeout_ms)


async def click(
    locator: Locator | None,
    ctx: ToolContext,
    *,
    timeout_ms: int,
    submits: bool = False,
    dialog: DialogChoice | None = None,
) -> Mapping[str, Any]:
    """Click an element of the run's page; without a locator, submit the form filled last.

    Args:
        submits: of elements that fit equally well, one that may submit the last filled field.
        dialog: answers the question that the page asks; without it, the question is dismissed.
    """
    async with lease_run_tab(ctx) as tab:
        answer_next_dialog(tab, dialog)
        interactor = interactor_for(tab, ctx, timeout_ms=timeout_ms)
        element = await interactor.click(locator, submits=submits)
        return {"match": element.match, "warnings": tab.watch.dialogs[:MAX_DIALOGS]}
