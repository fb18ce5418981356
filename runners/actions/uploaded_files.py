"""Read the files of browser_upload, for every kind of browser."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass, field

from runners.actions.parameters import UploadedFile
from runners.errors import InvalidTarget, ToolFailed
from runners.tools.base import ToolContext

MAX_BYTES = 25 * 1024 * 1024  # of an upload, in either direction


@dataclass(frozen=True, slots=True)
class FileForPage:
    """A file that the page gets."""

    name: str
    media_type: str
    data: bytes = field(repr=False)


async def read_files(files: Sequence[UploadedFile], ctx: ToolContext) -> list[FileForPage]:
    """Return the files with their contents.

    Raises:
        ToolFailed: The caller may not read one of them, or together they are too large.
    """
    if ctx.read_upload is None:
        raise InvalidTarget("files: this call has no files.", details={"effect": "none"})
    read: list[FileForPage] = []
    left = MAX_BYTES
    for file in files:
        try:
            name, data = await ctx.read_upload(
                artifact_id=file.artifact_id, path=file.path, limit=left
            )
        except ToolFailed as failed:
            failed.details = {**failed.details, "effect": "none"}
            raise
        left -= len(data)
        media_type = mimetypes.guess_type(name, strict=False)[0] or "application/octet-stream"
        read.append(FileForPage(name, media_type, data))
    return read
