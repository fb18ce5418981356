"""One HTTP request: its headers, its body, and the responses that are sent without the SDK."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCError
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.settings import api_settings

from decisions.foundation.errors import InvalidInput
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal
from decisions.rest_base.arguments import check_content_type, check_encoding
from mcp_server.http.access import authenticate
from mcp_server.protocol.message_parser import parse_message

_error_response: Callable[..., HttpResponse] = api_settings.EXCEPTION_HANDLER  # type: ignore[assignment]
INLINE_PARSE_BYTES = 64 * 1024  # a larger body is parsed on a thread
BOTH_TYPES = ("application/json", "text/event-stream")


class NotAcceptable(InvalidInput):
    """The Accept header lacks a content type of the response."""

    http_status = 406
    recovery = "Send the header Accept: application/json, text/event-stream."


class Exchange:
    """A request and its response; `authenticate` sets `principal`.

    Attributes:
        has_started: whether the response has started: after that no error response can be sent.
    """

    def __init__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        self.scope, self.receive, self._send = scope, receive, send
        self.request = ASGIRequest(dict(scope), io.BytesIO())
        self.has_started = False
        self._principal: Principal | None = None

    @property
    def principal(self) -> Principal:
        """The caller."""
        assert self._principal is not None, "the request was not authenticated"  # noqa: S101
        return self._principal

    def header(self, name: str) -> str:
        """Return a header's value, or an empty string."""
        return str(self.request.headers.get(name, ""))

    async def authenticate(self) -> None:
        """Set `principal`.

        Raises:
            Refused: As `access.authenticate`.
        """
        self._principal = await in_thread(authenticate, self.request)

    def require_json(self) -> None:
        """Check that the headers declare a JSON body without a content encoding.

        Raises:
            UnsupportedBody: They do not.
        """
        check_encoding(self.request)
        check_content_type(self.request)

    def require_accept(self, *required: str) -> None:
        """Check that the client accepts all of these content types.

        Raises:
            NotAcceptable: It does not.
        """
        accepted = {
            each.partition(";")[0].strip().lower() for each in self.header("Accept").split(",")
        }
        for name in required:
            if not accepted & {"*/*", name, name.partition("/")[0] + "/*"}:
                raise NotAcceptable(f"The Accept header lacks {name}.")

    async def body(self) -> bytes | None:
        """Return the whole body, or None if the client disconnected before its end."""
        pieces: list[bytes] = []
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                return None
            pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(pieces)

    async def respond(self, response: HttpResponse) -> None:
        """Send a complete response."""
        headers = [(n.lower().encode(), v.encode()) for n, v in response.items()]
        status = response.status_code
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": response.content})

    async def respond_json(self, value: Any, status: int) -> None:
        """Send a JSON value; for None an empty body."""
        body = b"" if value is None else orjson.dumps(value)
        response = HttpResponse(body, status=status, content_type="application/json")
        if value is None:
            del response["Content-Type"]
        response["Content-Length"] = str(len(body))
        await self.respond(response)

    async def respond_error(self, error: Exception, *, allow: str) -> None:
        """Send the response that REST sends to this error."""
        response = _error_response(error, {"request": self.request})
        if isinstance(error, MethodNotAllowed):
            response["Allow"] = allow
        await self.respond(response)

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send an ASGI event."""
        self.has_started = True
        await self._send(message)


async def parse_body(body: bytes) -> SessionMessage | JSONRPCError:
    """Return the message in a body, or the error response to it."""
    if len(body) <= INLINE_PARSE_BYTES:
        return parse_message(body)
    return await asyncio.to_thread(parse_message, body)


def error_body(error: JSONRPCError) -> dict[str, Any]:
    """Return a JSON-RPC error as a response body, which always has an id, if only null."""
    details = {"code": error.error.code, "message": error.error.message}
    if error.error.data is not None:
        details["data"] = error.error.data
    return {"jsonrpc": "2.0", "id": error.id, "error": details}
