"""One HTTP request on its way: its head, its body, and the answers that need no SDK."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCError
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.settings import api_settings

from decisions.api.arguments import check_content_type, check_encoding
from decisions.errors import InvalidInput
from decisions.identity.principals import Principal
from decisions.infra.threads import in_thread
from mcp_server.http.access import authenticate
from mcp_server.protocol.message_parser import parse_message

_translated: Callable[..., HttpResponse] = api_settings.EXCEPTION_HANDLER  # type: ignore[assignment]
AT_ONCE_BYTES = 64 * 1024  # a larger body is judged on a thread
BOTH_TYPES = ("application/json", "text/event-stream")


class NotAcceptable(InvalidInput):
    """The caller takes none of the types that answers may come in."""

    http_status = 406
    recovery = "Send the header Accept: application/json, text/event-stream."


@dataclass
class Exchange:
    """A request and the way back to its caller; `principal` is set by `admit`."""

    scope: Mapping[str, Any]
    receive: Any
    send: Any

    def __post_init__(self) -> None:
        self.request = ASGIRequest(dict(self.scope), io.BytesIO())
        self._principal: Principal | None = None

    @property
    def principal(self) -> Principal:
        """Who calls."""
        assert self._principal is not None, "the request was not admitted"  # noqa: S101
        return self._principal

    def header(self, name: str) -> str:
        """Return a header's value, or nothing."""
        return str(self.request.headers.get(name, ""))

    async def authenticate(self) -> None:
        """Find out who calls.

        Raises:
            Refused: As `admission.admit`.
        """
        self._principal = await in_thread(authenticate, self.request)

    def require_method(self, method: str) -> None:
        """Refuse every other method.

        Raises:
            MethodNotAllowed: It is another.
        """
        if self.scope["method"] != method:
            raise MethodNotAllowed(self.scope["method"])

    def require_json(self) -> None:
        """Refuse a body that is not said to be plain JSON.

        Raises:
            UnsupportedBody: It is not.
        """
        check_encoding(self.request)
        check_content_type(self.request)

    def require_accept(self, *wanted: str) -> None:
        """Refuse a caller that does not take all of these types.

        Raises:
            NotAcceptable: It does not.
        """
        taken = {
            each.partition(";")[0].strip().lower() for each in self.header("Accept").split(",")
        }
        for name in wanted:
            if not taken & {"*/*", name, name.partition("/")[0] + "/*"}:
                raise NotAcceptable(f"The header Accept does not name {name}.")

    async def body(self) -> bytes | None:
        """Return the whole body, or None where the caller left before its end."""
        pieces: list[bytes] = []
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                return None
            pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(pieces)

    async def answer(self, response: HttpResponse) -> None:
        """Send a whole answer."""
        headers = [(n.lower().encode(), v.encode()) for n, v in response.items()]
        status = response.status_code
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": response.content})

    async def answer_json(self, value: Any, status: int = HTTPStatus.OK) -> None:
        """Send a JSON value, or nothing but the status where the value is None."""
        body = b"" if value is None else orjson.dumps(value)
        response = HttpResponse(body, status=status, content_type="application/json")
        if value is None:
            del response["Content-Type"]
        response["Content-Length"] = str(len(body))
        await self.answer(response)

    async def refuse(self, error: Exception, *, allow: str) -> None:
        """Send the answer that a call over REST would get to this error."""
        response = _translated(error, {"request": self.request})
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            response["Allow"] = allow
        await self.answer(response)


async def parse_body(body: bytes) -> SessionMessage | JSONRPCError:
    """Return what the gate makes of a body."""
    if len(body) <= AT_ONCE_BYTES:
        return parse_message(body)
    return await asyncio.to_thread(parse_message, body)


def as_error(error: JSONRPCError) -> dict[str, Any]:
    """Return a JSON-RPC error as it stands in a body: with an id, be it null."""
    told = {"code": error.error.code, "message": error.error.message}
    if error.error.data is not None:
        told["data"] = error.error.data
    return {"jsonrpc": "2.0", "id": error.id, "error": told}
