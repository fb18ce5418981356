"""Store the trace of a step as an artifact."""

from __future__ import annotations

from runners.tools.base import ToolContext


async def save_trace(ctx: ToolContext, snapshot_name: str) -> str | None:
    """Store the trace of the run's pages as an artifact and return its id.

    Returns None if there is no trace, or the run has opened no page.
    """
    if ctx.browser is None or not (tabs := ctx.browser.tabs_of_run()):
        return None
    page = next((tab.page for tab in tabs if tab.is_usable), None)
    data = await ctx.browser.tracer.take(page, snapshot_name)
    if data is None:
        return None
    return await ctx.save_artifact(
        data, name="trace.zip", mime_type="application/zip", kind="trace"
    )
