"""The action `task_stop`: end the work on the task's tab."""

from __future__ import annotations

from runners.actions.catalogue import TASK_STOP
from runners.actions.parameters import TaskStop
from runners.actions.registration import action
from runners.actions.results import TaskStopped
from runners.browser.tabs.task_tab import end_task
from runners.tools.base import ToolContext


@action(TASK_STOP)
async def task_stop(args: TaskStop, ctx: ToolContext) -> TaskStopped:
    """End the work on the task's tabs: they accept no actions until task_start is called again.
    `closeTab` closes them too. Safe to call again.
    """
    if ctx.browser is not None:
        await end_task(ctx.browser)
        if args.close_tab:
            await ctx.browser.close_run_tab()
    return TaskStopped()
