"""Requests that are refused with a status and an error; nothing is executed.

RequestRefused
├── InvalidRequest      400, 413, 415, 431   INVALID_REQUEST
├── TokenMissing        401                  UNAUTHORIZED
├── RequestForbidden    403                  FORBIDDEN
├── PathNotServed       404, 405             NOT_FOUND, METHOD_NOT_ALLOWED
└── RunnerBusy          503                  BUSY
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class RequestRefused(Exception):
    """A request that is refused."""

    status: int = 400
    code: str = "INVALID_REQUEST"
    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidRequest(RequestRefused):
    """The request violates S3 §3."""


class BodyNotRead(InvalidRequest):
    """The body was not read completely, so the connection cannot be reused."""

    headers = {"connection": "close"}


class RunnerBodyTooLarge(BodyNotRead):
    """The body has more bytes than allowed."""

    status = 413


class UnsupportedContent(BodyNotRead):
    """The content type or content encoding is not accepted."""

    status = 415


class RunnerHeadTooLarge(BodyNotRead):
    """The headers have more bytes than allowed."""

    status = 431


class TokenMissing(BodyNotRead):
    """The token is missing or wrong."""

    status, code = 401, "UNAUTHORIZED"
    headers = {"www-authenticate": "Bearer", "connection": "close"}


class RequestForbidden(BodyNotRead):
    """The request comes from a web page, or names another host."""

    status, code = 403, "FORBIDDEN"


class PathNotServed(BodyNotRead):
    """Nothing is served at this path."""

    status, code = 404, "NOT_FOUND"


class RunnerMethodNotAllowed(PathNotServed):
    """The path does not accept this method."""

    status, code = 405, "METHOD_NOT_ALLOWED"


class RunnerBusy(BodyNotRead):
    """The maximum number of calls is in flight."""

    status, code = 503, "BUSY"
    headers = {"retry-after": "1", "connection": "close"}
