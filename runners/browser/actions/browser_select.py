"""The action `browser_select`: select options of a list of the task's page."""

from __future__ import annotations

from runners.actions.catalogue import SELECT
from runners.actions.parameters import BrowserSelect
from runners.actions.registration import action
from runners.actions.results import OptionsSelected
from runners.browser.input.gestures import select_options
from runners.browser.parameters import ElementReference
from runners.browser.tabs.task_input import send_input
from runners.browser.tabs.task_tab import task_tab
from runners.tools.base import ToolContext


@action(SELECT)
async def browser_select(args: BrowserSelect, ctx: ToolContext) -> OptionsSelected:
    """Select options of a <select>, by label or value; nothing is selected unless all exist. The
    error lists the options. Returns the labels that are selected afterwards.
    """
    target = ElementReference.of(args)
    async with task_tab(ctx, args.tab_id) as task:
        sent = await send_input(
            task,
            ctx,
            lambda interactor: select_options(interactor, target, args.options),
            is_real=False,
            dialog=args.dialog,
        )
    return OptionsSelected(selected=sent.result, downloads=sent.downloads, warnings=sent.warnings)
