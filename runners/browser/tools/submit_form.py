"""The tool `submit_form`: send the form that was filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from runners.browser.interaction.run_tab import interactor_for, lease_run_tab
from runners.browser.parameters import LOCATE_MS, LocateTimeout, Locator
from runners.browser.tools.click_element import dialog_warnings
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool


class SubmitForm(Closed):
    """By which button."""

    locator: Locator | None = Field(
        default=None,
        description="The button to press; without it the submit button of the form that was filled"
        " last, or the Enter key where it has none.",
    )
    timeout_ms: LocateTimeout = Field(default=LOCATE_MS, alias="timeoutMs")


@tool("submit_form", kind="browser", effect=Effect.ONCE, timeout_ms=80_000)
async def submit_form(args: SubmitForm, ctx: ToolContext) -> Mapping[str, Any]:
    """Submit a form of the run's page by its button, or by Enter, once.

    Returns match {type, label, score, by, matched, equals} as soon as it is pressed;
    read_current_page and wait_for wait for what comes of it. A failure tells in details.effect
    whether the form may have been sent: `none` or `unknown`.
    """
    async with lease_run_tab(ctx) as tab:
        aimed = await interactor_for(tab, ctx, timeout_ms=args.timeout_ms).press(args.locator)
        return {"match": aimed.match, "warnings": dialog_warnings(tab.dialogs)}
