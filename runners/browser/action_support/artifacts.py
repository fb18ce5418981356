"""Keeping what an action made."""

from __future__ import annotations

from runners.actions.errors import ArtifactUploadFailed
from runners.tools.base import ToolContext

MAX_BYTES = 25 * 1024 * 1024  # as an upload from a browser elsewhere may have (agent.md, "Plugin")


async def keep(ctx: ToolContext, data: bytes, *, name: str, mime_type: str, kind: str) -> str:
    """Keep bytes as an artifact and return its id.

    Raises:
        ArtifactUploadFailed: They are too many, or the store does not take them.
    """
    if len(data) > MAX_BYTES:
        raise too_large(name, len(data))
    try:
        return await ctx.save_artifact(data, name=name, mime_type=mime_type, kind=kind)
    except OSError as error:
        raise ArtifactUploadFailed(
            f"{name} could not be kept.", details={"reason": type(error).__name__}
        ) from None


def too_large(name: str, size: int) -> ArtifactUploadFailed:
    """Return the failure of what has more than MAX_BYTES bytes, `size` at least."""
    return ArtifactUploadFailed(
        f"{name} has {size} bytes or more; {MAX_BYTES} may be kept.",
        details={"reason": "too_large", "limitBytes": MAX_BYTES},
    )
