"""The tool `submit_form`: submit the form that was filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from runners.actions.parameters import Dialog
from runners.browser.parameters import LOCATE_MS, LocateTimeout, Locator
from runners.browser.tools.click_element import click
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool


class SubmitForm(Closed):
    """Which button to use."""

    locator: Locator | None = Field(
        default=None,
        description="The button to click; default: the submit button of the form that was filled"
        " last, or the Enter key if it has none.",
    )
    dialog: Dialog = None
    timeout_ms: LocateTimeout = Field(default=LOCATE_MS, alias="timeoutMs")


@tool("submit_form", kind="browser", effect=Effect.ONCE, timeout_ms=80_000)
async def submit_form(args: SubmitForm, ctx: ToolContext) -> Mapping[str, Any]:
    """Submit a form of the run's page by its button, or by Enter, once.

    Returns match {type, label, score, by, matched, equals} right after the click; read_current_page
    and wait_for wait for its effect. For a failure, details.effect tells whether the form may have
    been sent: `none` or `unknown`.
    """
    return await click(args.locator, ctx, timeout_ms=args.timeout_ms, dialog=args.dialog)
