"""Streaming downloads of whole artifacts: range requests, headers, safe file names."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import IO, Any

from django.utils.http import content_disposition_header

from artifacts.models import Artifact

PIECE_BYTES = 256 * 1024
_RANGE = re.compile(r"bytes=\s*([0-9]{0,18})-([0-9]{0,18})\s*", re.ASCII)
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(; ?charset=[\w-]+)?", re.ASCII)
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f"\\/:*?<>|\u200e\u200f\u2028-\u202e\u2066-\u2069]+')
log = logging.getLogger(__name__)


class RangeOutside(Exception):
    """The requested range has no byte of the artifact."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `start` up to but excluding `stop`."""

    start: int
    stop: int

    @property
    def size_bytes(self) -> int:
        """The number of bytes."""
        return self.stop - self.start


def parse_range(header: str, size_bytes: int) -> ByteRange | None:
    """Parse a Range header; None for a range that is ignored, so that the whole is sent.

    Multiple and malformed ranges are ignored (RFC 9110 §14.2).

    Raises:
        RangeOutside: The response has to be 416.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        start, stop = max(0, size_bytes - int(last)), size_bytes
    elif last and int(last) < int(first):
        return None
    else:
        start, stop = int(first), min(size_bytes, int(last) + 1 if last else size_bytes)
    if start >= stop:
        raise RangeOutside
    return ByteRange(start, stop)


def headers_of(row: Artifact) -> dict[str, str]:
    """Return the headers of a download: an attachment with a safe name, not rendered as a page."""
    disposition = content_disposition_header(True, safe_name(row.name))
    return {
        "Content-Type": _media_type(row.mime_type),
        "Content-Disposition": disposition or "attachment",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-cache",
        "Accept-Ranges": "bytes",
        "ETag": f'"{row.sha256}"',
    }


def safe_name(name: str) -> str:
    """Return the file name without characters for headers, paths, or text direction."""
    return _UNSAFE.sub("_", name).strip(". ")[:200] or "artifact"


def _media_type(stored: str) -> str:
    if not _MEDIA_TYPE.fullmatch(stored):
        return "application/octet-stream"
    plain_text = stored.startswith("text/") and "charset" not in stored
    return f"{stored}; charset=utf-8" if plain_text else stored


class FileChunks:
    """An async iterator over a byte range of a file, read in pieces off the event loop."""

    def __init__(self, file: IO[Any], span: ByteRange) -> None:
        self._file, self._span = file, span

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._span.size_bytes
        await asyncio.to_thread(self._file.seek, self._span.start)
        while left:
            piece = await asyncio.to_thread(self._file.read, min(PIECE_BYTES, left))
            if not piece:
                log.error("an artifact has fewer bytes in the storage than its row states")
                return
            left -= len(piece)
            yield piece

    def close(self) -> None:
        """Close the file."""
        self._file.close()
