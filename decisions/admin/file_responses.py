"""HTTP responses of the admin that download a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from decisions.audit.bundle import file_headers, in_batches


def bundle_file(request: HttpRequest, lines: Iterator[bytes], name: str) -> StreamingHttpResponse:
    """Return a response that streams the lines of an audit bundle as an attachment."""
    content: Any = in_batches(lines) if isinstance(request, ASGIRequest) else lines
    return StreamingHttpResponse(content, headers=file_headers(name))
