"""The tool `click_element`: press something on the run's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from runners.browser.interaction.run_tab import interactor_for, lease_run_tab
from runners.browser.parameters import LOCATE_MS, LocateTimeout, Locator
from runners.browser.session.crashes import dismissed_dialog_notice
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool


class ClickElement(Closed):
    """What to press."""

    locator: Locator
    timeout_ms: LocateTimeout = Field(default=LOCATE_MS, alias="timeoutMs")


@tool("click_element", kind="browser", effect=Effect.ONCE, timeout_ms=80_000)
async def click_element(args: ClickElement, ctx: ToolContext) -> Mapping[str, Any]:
    """Press a button, a link or the like on the run's page with the mouse, once.

    It waits until the element can be reached: in view, enabled, at rest, with nothing over it. What
    would open in a tab of its own opens in this one. Returns match {type, label, score, by,
    matched, equals} as soon as it is pressed; read_current_page and wait_for wait for what comes
    of it.
    """
    async with lease_run_tab(ctx) as tab:
        aimed = await interactor_for(tab, ctx, timeout_ms=args.timeout_ms).press(args.locator)
        return {"match": aimed.match, "warnings": dialog_warnings(tab.dialogs)}


def dialog_warnings(dialogs: list[str]) -> list[str]:
    """Return a warning for each question that the page asked in a dialog."""
    return [dismissed_dialog_notice(asked) for asked in dialogs[:5]]
