"""The action `browser_select`: select options of a list of the task's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import SELECT
from runners.actions.parameters import BrowserSelect
from runners.actions.registration import action
from runners.actions.results import OptionsSelected
from runners.browser.input.gestures import select_options
from runners.browser.parameters import ElementReference
from runners.browser.tabs.input_strategy import with_input_strategy
from runners.browser.tabs.stored_downloads import store_downloads
from runners.browser.tabs.task_tab import page_notices, task_tab
from runners.tools.base import ToolContext

LOCATE_MS = 2000


@action(SELECT, kind="browser")
async def browser_select(args: BrowserSelect, ctx: ToolContext) -> Mapping[str, Any]:
    """Select options of a <select>, by label or value; nothing is selected unless all exist. The
    error lists the options. Returns the labels that are selected afterwards.
    """
    target = ElementReference.model_validate({"clickId": args.click_id, "xpath": args.xpath})
    async with task_tab(ctx, args.tab_id) as task:
        selected, _, warnings = await with_input_strategy(
            task,
            ctx,
            lambda interactor: select_options(interactor, target, args.options),
            by_cdp=False,
            locate_ms=LOCATE_MS,
            dialog=args.dialog,
        )
        downloads, download_warnings = await store_downloads(task, ctx)
        warnings += download_warnings + page_notices(task, ctx)
    return OptionsSelected(selected=selected, downloads=downloads, warnings=warnings).as_output()
