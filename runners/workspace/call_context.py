"""The workspace and the deadline of a workspace tool's call."""

from __future__ import annotations

from runners.tools.base import ToolContext
from runners.workspace.errors import ToolDisabled, WriteConflict
from runners.workspace.files.paths import display_path
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


def require_confirmed(expected: str | None, current: str, name: str) -> None:
    """Raise unless a confirmed call works on what the person was shown.

    Args:
        expected: `ToolContext.confirmed_basis`.
        current: digest of what the call works on now.
        name: of the file or script.

    Raises:
        WriteConflict: It has changed.
    """
    if expected is not None and expected != current:
        raise WriteConflict(
            f"{display_path(name)} has changed since a person was asked to confirm this call."
            " Nothing was done; make a new call, which needs a new confirmation.",
            details={"path": display_path(name), "effect": "none"},
        )


def thread_deadline(ctx: ToolContext) -> float:
    """Return the `time.monotonic()` value by which a thread of this call must stop."""
    return ctx.deadline - MARGIN_SECONDS
