"""The workspace and the deadline of a workspace tool's call."""

from __future__ import annotations

from runners.tools.base import ToolContext
from runners.workspace.errors import ToolDisabled
from runners.workspace.workspace import ProjectWorkspace

# A thread stops this long before the call's deadline, so that the tool itself reports the timeout.
MARGIN_SECONDS = 0.25


def require_workspace(ctx: ToolContext) -> ProjectWorkspace:
    """Return the call's workspace.

    Raises:
        ToolDisabled: The call has no workspace.
    """
    if ctx.workspace is None:
        raise ToolDisabled(
            "No workspace is set.",
            hint="Start the server with --workspace DIR, or name a target of kind workspace.",
        )
    return ctx.workspace


def thread_deadline(ctx: ToolContext) -> float:
    """Return the `time.monotonic()` value by which a thread of this call must stop."""
    return ctx.deadline - MARGIN_SECONDS
