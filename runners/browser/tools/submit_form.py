"""The tool `submit_form`: submit the form that was filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictStr

from runners.actions.parameters import Dialog
from runners.browser.input.search_submit import submit_search
from runners.browser.parameters import LOCATE_MS, LocateTimeout, Locator
from runners.browser.tabs.run_tab import interactor_for, lease_run_tab
from runners.browser.tools.click_element import MAX_DIALOGS, click
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
    search_query: StrictStr | None = Field(
        default=None,
        min_length=1,
        max_length=2000,
        alias="searchQuery",
        description="For a search, what was entered: if the Enter key starts nothing, the search"
        " button beside the field is clicked. Needs watch_page before.",
    )
    timeout_ms: LocateTimeout = Field(default=LOCATE_MS, alias="timeoutMs")


@tool("submit_form", kind="browser", effect=Effect.ONCE, timeout_ms=80_000)
async def submit_form(args: SubmitForm, ctx: ToolContext) -> Mapping[str, Any]:
    """Submit a form of the run's page by its button, or by Enter, once.

    Returns match {type, label, score, by, matched, equals} right after the click; read_current_page
    and wait_for wait for its effect. For a failure, details.effect says whether the form may have
    been sent: `none` or `unknown`. With searchQuery also sentBy: button, enter or searchButton.
    """
    if args.search_query is None or args.locator is not None:
        clicked = await click(
            args.locator, ctx, timeout_ms=args.timeout_ms, submits=True, dialog=args.dialog
        )
        return clicked if args.search_query is None else {**clicked, "sentBy": "button"}
    async with lease_run_tab(ctx) as tab:
        interactor = interactor_for(tab, ctx, timeout_ms=args.timeout_ms)
        element, sent_by = await submit_search(interactor, args.search_query)
        return {
            "match": element.match,
            "warnings": tab.watch.dialogs[:MAX_DIALOGS],
            "sentBy": sent_by,
        }
