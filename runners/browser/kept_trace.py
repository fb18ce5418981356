"""A step's trace as an artifact."""

from __future__ import annotations

from runners.base import ToolContext


async def keep_trace(ctx: ToolContext, told: str) -> str | None:
    """Save a trace of the run's pages as an artifact and return its id; None where there is
    none.
    """
    if ctx.browser is None:
        return None
    tabs = ctx.browser.open_tabs()
    data = await ctx.browser.tracer.take(tabs[0].page if tabs else None, told)
    if data is None:
        return None
    return await ctx.save_artifact(
        data, name="trace.zip", mime_type="application/zip", kind="trace"
    )
