"""How an artifact's bytes reach an operator's browser: pictures that are pictures, everything else
as a file.

Bytes that pages out there wrote are never given a type that a browser would run: the type of a
picture is read from its first bytes, not from what somebody said it is.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import IO, Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from artifacts.api.downloads import PIECE_BYTES, ByteRange, FileChunks, headers_of, safe_name
from artifacts.models import Artifact

INLINE_MAX = 20 * 1024 * 1024  # bytes of a picture that is shown in a page
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
PICTURE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def picture_type(head: bytes) -> str | None:
    """Return a raster picture's type by its first bytes, None for anything else, SVG included."""
    for magic, mime_type in _MAGIC.items():
        if head.startswith(magic):
            return mime_type
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def is_picture(row: Artifact) -> bool:
    """Tell whether a page may try to show the artifact as a picture."""
    return (
        row.mime_type in PICTURE_TYPES and row.size_bytes <= INLINE_MAX and row.expired_at is None
    )


def picture(row: Artifact, file: IO[Any]) -> HttpResponse:
    """Return the picture for showing in a page, 415 where the bytes are none. Closes the file."""
    with file:
        data = file.read(INLINE_MAX + 1)
    mime_type = picture_type(data[:16])
    if mime_type is None or len(data) > INLINE_MAX:
        told = "This artifact is not shown as a picture."
        return HttpResponse(told, status=415, content_type="text/plain; charset=utf-8")
    name = content_disposition_header(False, safe_name(row.name)) or "inline"
    # One id, one content, for ever: a page that refreshes does not fetch it again.
    kept = {"Cache-Control": "private, max-age=86400, immutable"}
    inline = {"Content-Type": mime_type, "Content-Disposition": name}
    return HttpResponse(data, headers={**headers_of(row), **inline, **kept})


def attachment(request: HttpRequest, row: Artifact, file: IO[Any]) -> HttpResponseBase:
    """Return the bytes as a file to save, a piece at a time. The answer closes the file."""
    pieces: Any = _pieces(file)
    if isinstance(request, ASGIRequest):
        pieces = FileChunks(file, ByteRange(0, row.size_bytes))
    saved = {
        "Content-Type": "application/octet-stream",
        "Content-Length": str(row.size_bytes),
        "Accept-Ranges": "none",
    }
    return StreamingHttpResponse(pieces, headers={**headers_of(row), **saved})


def _pieces(file: IO[Any]) -> Iterator[bytes]:
    with file:
        yield from iter(functools.partial(file.read, PIECE_BYTES), b"")
