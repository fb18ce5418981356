"""Requests that are not taken: answered with a status and a ToolResult that says why.

Refusal               the request is answered with an error, and nothing is executed
├── InvalidRequest    400, 413, 415, 431   INVALID_REQUEST
├── Unauthorized      401             UNAUTHORIZED
├── NotForYou         403             FORBIDDEN
├── NoSuchPath        404, 405        NOT_FOUND, METHOD_NOT_ALLOWED
└── Busy              503             BUSY
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class Refusal(Exception):
    """A request that is answered with an error."""

    status: int = 400
    code: str = "INVALID_REQUEST"
    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidRequest(Refusal):
    """No request as S3 §3 has it."""


class UnreadBody(InvalidRequest):
    """A body that is not read to its end, so the connection cannot be used again."""

    headers = {"connection": "close"}


class BodyTooLarge(UnreadBody):
    """More bytes than a call may have."""

    status = 413


class NotJson(UnreadBody):
    """A content type or an encoding that is not taken."""

    status = 415


class HeadTooLarge(UnreadBody):
    """More bytes of headers than any call needs."""

    status = 431


class Unauthorized(UnreadBody):
    """No token, or a wrong one."""

    status, code = 401, "UNAUTHORIZED"
    headers = {"www-authenticate": "Bearer", "connection": "close"}


class NotForYou(UnreadBody):
    """A web page, or a name that is not this runner's."""

    status, code = 403, "FORBIDDEN"


class NoSuchPath(UnreadBody):
    """Nothing is served there."""

    status, code = 404, "NOT_FOUND"


class WrongMethod(NoSuchPath):
    """It is asked for in another way."""

    status, code = 405, "METHOD_NOT_ALLOWED"


class Busy(UnreadBody):
    """As many calls as there may be at once are under way."""

    status, code = 503, "BUSY"
    headers = {"retry-after": "1", "connection": "close"}
