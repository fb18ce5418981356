"""Answers of the admin site that are files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from decisions.audit.bundle import file_headers, in_batches


def bundle_file(request: HttpRequest, lines: Iterator[bytes], name: str) -> StreamingHttpResponse:
    """Return a bundle as a file to save, sent as it is made."""
    streamed: Any = in_batches(lines) if isinstance(request, ASGIRequest) else lines
    return StreamingHttpResponse(streamed, headers=file_headers(name))
