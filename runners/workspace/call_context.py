"""Where and until when a call of a workspace tool works."""

from __future__ import annotations

from runners.tools.base import ToolContext
from runners.workspace.errors import ToolDisabled
from runners.workspace.workspace import Workspace

# Threads end a little before the call itself, so that the tool says what was too slow.
MARGIN_SECONDS = 0.25


def require_workspace(ctx: ToolContext) -> Workspace:
    """Return the call's workspace.

    Raises:
        ToolDisabled: It has none.
    """
    if ctx.workspace is None:
        raise ToolDisabled(
            "No workspace is set.",
            hint="Start the server with --workspace DIR, or name a target of kind workspace.",
        )
    return ctx.workspace


def thread_deadline(ctx: ToolContext) -> float:
    """Return the `time.monotonic()` value until which a thread of this call may work."""
    return ctx.deadline - MARGIN_SECONDS
