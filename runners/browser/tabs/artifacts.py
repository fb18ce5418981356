"""Store the output of an action as an artifact."""

from __future__ import annotations

from runners.actions.errors import ArtifactUploadFailed
from runners.actions.uploaded_files import MAX_BYTES
from runners.tools.base import ToolContext


async def store_artifact(
    ctx: ToolContext, data: bytes, *, name: str, mime_type: str, kind: str
) -> str:
    """Store bytes as an artifact and return its id.

    Raises:
        ArtifactUploadFailed: They exceed MAX_BYTES, or the store failed.
    """
    if len(data) > MAX_BYTES:
        raise too_large(name, len(data))
    try:
        return await ctx.save_artifact(data, name=name, mime_type=mime_type, kind=kind)
    except OSError as error:
        raise ArtifactUploadFailed(
            f"{name} could not be stored.", details={"reason": type(error).__name__}
        ) from None


def too_large(name: str, size: int) -> ArtifactUploadFailed:
    """Return the failure for an output of at least `size` bytes, which exceeds MAX_BYTES."""
    return ArtifactUploadFailed(
        f"{name} has at least {size} bytes; the limit is {MAX_BYTES}.",
        details={"reason": "too_large", "limitBytes": MAX_BYTES},
    )
