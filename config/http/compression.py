"""Gzip for pages, JSON and static files.

Not compressed: streams, downloads and ranges; and responses to anything but GET, because those can
contain a new token or secret beside text of the request, whose length would then depend on how
much of the secret the text guesses (BREACH). Pages contain a CSRF token, which Django masks anew
for each response, and each compressed response has a random length besides.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from pathlib import Path

from django.http import HttpRequest
from django.http.response import HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin
from django.utils.text import compress_string
from starlette.responses import FileResponse, Response

MIN_BYTES = 1024  # a smaller response fits into one packet anyway
RANDOM_BYTES = 100  # at most, of each response's length
_TEXTS = ("text/html", "text/css", "text/javascript", "text/plain", "image/svg+xml")
_OF_THE_FILE = ("content-length", "etag", "accept-ranges")  # its headers, not its compression's
_SCRIPTS = ("application/json", "application/javascript", "application/problem+json")


def accepts_gzip(accepted: str) -> bool:
    """Return whether an Accept-Encoding header accepts gzip."""
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def compress(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Compress the body of a response to GET in place, where that is safe and makes it smaller."""
    if not isinstance(response, HttpResponse) or not _may_compress(request, response):
        return response
    patch_vary_headers(response, ("Accept-Encoding",))
    if not accepts_gzip(request.headers.get("Accept-Encoding", "")):
        return response
    body = compress_string(response.content, max_random_bytes=RANDOM_BYTES)
    if len(body) < len(response.content):
        response.content = body
        response.headers["Content-Length"] = str(len(body))
        response.headers["Content-Encoding"] = "gzip"
    return response


def _may_compress(request: HttpRequest, response: HttpResponse) -> bool:
    return (
        request.method == "GET"
        and len(response.content) >= MIN_BYTES
        and not response.has_header("Content-Encoding")
        and not response.has_header("Content-Range")
        and not response.has_header("Content-Disposition")
        and _is_text(response.headers.get("Content-Type", ""))
    )


def _is_text(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() in _TEXTS + _SCRIPTS


class CompressionMiddleware(MiddlewareMixin):
    """Compress pages; the API's handler, which has no middleware, calls `compress` itself."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Return the response, compressed where `compress` does."""
        return compress(request, response)


class CompressedFiles:
    """Compressed static files: each version of a file is compressed once and kept in memory."""

    def __init__(self) -> None:
        self._bodies: dict[str, tuple[str, bytes]] = {}  # path -> ETag and compressed bytes

    async def compressed(self, response: Response, headers: Mapping[str, str]) -> Response:
        """Return the response to a request with these headers; a whole text file is compressed."""
        if not isinstance(response, FileResponse) or not _is_text(response.headers["content-type"]):
            return response
        response.headers["Vary"] = "Accept-Encoding"
        if "range" in headers or not accepts_gzip(headers.get("accept-encoding", "")):
            return response
        body = await asyncio.to_thread(self._body, Path(response.path), response.headers["etag"])
        kept = {name: text for name, text in response.headers.items() if name not in _OF_THE_FILE}
        etag = f"W/{response.headers['etag']}"
        return Response(body, headers={**kept, "ETag": etag, "Content-Encoding": "gzip"})

    def _body(self, path: Path, etag: str) -> bytes:
        known = self._bodies.get(str(path))
        if known is None or known[0] != etag:
            known = self._bodies[str(path)] = (etag, gzip.compress(path.read_bytes()))
        return known[1]
