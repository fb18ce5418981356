"""HTTP responses with an artifact's bytes: raster images inline, everything else as a download.

The bytes are untrusted. An inline image gets its content type from its first bytes, not from the
type that was recorded, so that the browser never executes it.
"""

from __future__ import annotations

from typing import IO, Any

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from artifacts.api.downloads import ByteRange, FileChunks, headers_of, safe_name
from artifacts.models import Artifact

INLINE_MAX = 20 * 1024 * 1024  # bytes of an image shown in a page
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def image_type(head: bytes) -> str | None:
    """Return a raster image's MIME type by its first bytes; None for other content, also SVG."""
    for magic, mime_type in _MAGIC.items():
        if head.startswith(magic):
            return mime_type
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def is_image(row: Artifact) -> bool:
    """Return whether a page can try to show the artifact as an image."""
    return row.mime_type in IMAGE_TYPES and row.size_bytes <= INLINE_MAX and row.expired_at is None


def image_response(row: Artifact, file: IO[Any]) -> HttpResponse:
    """Return the image for display in a page, 415 for other content. Closes the file."""
    with file:
        data = file.read(INLINE_MAX + 1)
    mime_type = image_type(data[:16])
    if mime_type is None or len(data) > INLINE_MAX:
        message = _("This artifact cannot be shown as an image. Download it instead.")
        return HttpResponse(message, status=415, content_type="text/plain; charset=utf-8")
    name = content_disposition_header(False, safe_name(row.name)) or "inline"
    # The content of an artifact id never changes, so the browser may cache it.
    cache = {"Cache-Control": "private, max-age=86400, immutable"}
    inline = {"Content-Type": mime_type, "Content-Disposition": name}
    return HttpResponse(data, headers={**headers_of(row), **inline, **cache})


def attachment_response(row: Artifact, file: IO[Any]) -> HttpResponseBase:
    """Return the bytes as a streamed download. The response closes the file."""
    download = {
        "Content-Type": "application/octet-stream",
        "Content-Length": str(row.size_bytes),
        "Accept-Ranges": "none",
    }
    chunks = FileChunks(file, ByteRange(0, row.size_bytes))
    return StreamingHttpResponse(chunks, headers={**headers_of(row), **download})
