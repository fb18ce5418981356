"""The action `browser_debugger_attach`: attach to the tab for mouse and keyboard input."""

from __future__ import annotations

from runners.actions.catalogue import DEBUGGER_ATTACH
from runners.actions.parameters import BrowserDebuggerAttach
from runners.actions.registration import action
from runners.actions.results import DebuggerAttached
from runners.browser.tabs.task_tab import task_tab
from runners.tools.base import ToolContext


@action(DEBUGGER_ATTACH)
async def browser_debugger_attach(
    args: BrowserDebuggerAttach, ctx: ToolContext
) -> DebuggerAttached:
    """Attach to the task's tab for real mouse and keyboard input. browser_click and browser_type do
    so by themselves. Fails with CDP_UNAVAILABLE or CDP_PERMISSION_DENIED if it is not available.
    """
    async with task_tab(ctx, args.tab_id) as task:
        await task.attach()
    return DebuggerAttached()
