"""Streamable HTTP at `/mcp`: parse each message, then pass it to the SDK.

No state is kept between requests. The session id that `initialize` returns only identifies the
client (`session_ids`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCError, JSONRPCNotification, JSONRPCRequest

from decisions.foundation.validation.json_input import CALL_LIMIT
from decisions.foundation.validation.json_output import escape_line_separators
from decisions.rest_base.drf import throttle_request
from mcp_server.http.access import wait_until_credential_ends
from mcp_server.http.batch import ResponseCollector, is_batch, parse_batch
from mcp_server.http.exchange import BOTH_TYPES, Exchange, error_body, parse_body
from mcp_server.http.session_ids import HEADER as SESSION_HEADER
from mcp_server.http.session_ids import new_session_id, validate_session_id
from mcp_server.protocol.encoding import encode
from mcp_server.protocol.request_context import SCOPE_KEY, MessageContext, context_of
from mcp_server.server import ContinuityServer

CallKey = tuple[str, str, str | int]  # principal, session id, request id


class StreamableEndpoint:
    """The handler of `/mcp`."""

    def __init__(self, server: ContinuityServer) -> None:
        self._sdk = StreamableHTTPSessionManager(
            server, stateless=True, max_request_body_size=2 * CALL_LIMIT
        )
        self._in_flight: dict[CallKey, asyncio.Event] = {}

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run the SDK's session manager during a block; requests are served only there."""
        async with self._sdk.run():
            yield

    async def serve(self, exchange: Exchange) -> None:
        """Handle one authenticated request.

        Raises:
            Refused: Before the response has started.
        """
        exchange.require_json()
        exchange.require_accept(*BOTH_TYPES)
        validate_session_id(exchange.header(SESSION_HEADER))
        body = await exchange.body()
        if body is None:
            return
        if is_batch(exchange.header("MCP-Protocol-Version"), body):
            await self._serve_batch(exchange, body)
            return
        parsed = await parse_body(body)
        if isinstance(parsed, JSONRPCError):
            await exchange.respond_json(error_body(parsed), HTTPStatus.BAD_REQUEST)
            return
        await self._serve_message(exchange, parsed, exchange.send)

    async def _serve_message(self, exchange: Exchange, message: SessionMessage, send: Any) -> None:
        content = message.message
        if isinstance(content, JSONRPCNotification):
            self._cancel(exchange, content)
        is_initialize = isinstance(content, JSONRPCRequest) and content.method == "initialize"
        response = _SdkResponse(send, session_id=new_session_id() if is_initialize else "")
        refused = context_of(getattr(message.metadata, "request_context", None)).refused
        scope = {**exchange.scope, SCOPE_KEY: MessageContext(exchange.principal, refused)}
        with (
            self._track(exchange, content) as canceled,
            _end_with_credential(exchange, content, canceled),
        ):
            request = _SdkRequest(encode(content), exchange.receive, canceled)
            await self._sdk.handle_request(scope, request.receive, response.send)
        if canceled.is_set():
            await response.end()

    async def _serve_batch(self, exchange: Exchange, body: bytes) -> None:
        """Handle the messages of a batch concurrently and respond with the list of responses."""
        messages = await asyncio.to_thread(
            parse_batch, body, partial(throttle_request, exchange.request)
        )
        if isinstance(messages, JSONRPCError):
            await exchange.respond_json(error_body(messages), HTTPStatus.BAD_REQUEST)
            return
        collectors = [ResponseCollector() for _ in messages]
        async with asyncio.TaskGroup() as tasks:
            for message, collector in zip(messages, collectors, strict=True):
                if isinstance(message, JSONRPCError):
                    collector.errors.append(error_body(message))
                else:
                    tasks.create_task(self._serve_message(exchange, message, collector.send))
        responses = [each for collector in collectors for each in collector.responses()]
        status = HTTPStatus.OK if responses else HTTPStatus.ACCEPTED
        await exchange.respond_json(responses or None, status)

    # --- cancellation ------------------------------------------------------------------------

    @contextmanager
    def _track(self, exchange: Exchange, content: Any) -> Iterator[asyncio.Event]:
        """Register a request as in flight, and yield the event that cancels it."""
        canceled = asyncio.Event()
        key = _call_key(exchange, content.id) if isinstance(content, JSONRPCRequest) else None
        if key is None:
            yield canceled
            return
        self._in_flight[key] = canceled
        try:
            yield canceled
        finally:
            if self._in_flight.get(key) is canceled:
                del self._in_flight[key]

    def _cancel(self, exchange: Exchange, content: JSONRPCNotification) -> None:
        if content.method != "notifications/cancelled":
            return
        request_id = (content.params or {}).get("requestId")
        key = _call_key(exchange, request_id) if isinstance(request_id, str | int) else None
        canceled = self._in_flight.get(key) if key else None
        if canceled is not None:
            canceled.set()


@contextmanager
def _end_with_credential(
    exchange: Exchange, content: Any, canceled: asyncio.Event
) -> Iterator[None]:
    """Cancel a subscription when the caller's token becomes invalid; other calls end anyway."""
    if not (isinstance(content, JSONRPCRequest) and content.method == "subscriptions/listen"):
        yield
        return

    async def watch() -> None:
        await wait_until_credential_ends(exchange.principal)
        canceled.set()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


def _call_key(exchange: Exchange, request_id: str | int) -> CallKey | None:
    """Return the key of a client's call, or None for a client without a session id."""
    session_id = exchange.header(SESSION_HEADER)
    return (exchange.principal.id, session_id, request_id) if session_id else None


class _SdkRequest:
    """A request as the SDK reads it: the whole body, then a disconnect when the client disconnects
    or cancels the call.
    """

    def __init__(self, body: bytes, receive: Any, canceled: asyncio.Event) -> None:
        self._body: bytes | None = body
        self._receive = receive
        self._canceled = canceled

    async def receive(self) -> MutableMapping[str, Any]:
        """Return the next ASGI event."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        waits = [
            asyncio.ensure_future(self._receive()),
            asyncio.ensure_future(self._canceled.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return {"type": "http.disconnect"}


class _SdkResponse:
    """The SDK's response on its way to the client."""

    def __init__(self, send: Any, *, session_id: str) -> None:
        self._send = send
        self._session_id = session_id
        self._has_started = self._has_ended = self._is_stream = False

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send an ASGI event; adds a new client's session id to the headers."""
        if message["type"] == "http.response.start":
            self._has_started = True
            types = [value for name, value in message["headers"] if name == b"content-type"]
            self._is_stream = any(value.startswith(b"text/event-stream") for value in types)
            if self._session_id:
                header = (SESSION_HEADER.encode(), self._session_id.encode())
                message = {**message, "headers": [*message["headers"], header]}
        else:
            self._has_ended = not message.get("more_body", False)
            if self._is_stream:  # the SDK sends each event in one body part
                message = {**message, "body": escape_line_separators(message.get("body", b""))}
        await self._send(message)

    async def end(self) -> None:
        """End a response that the SDK left open because it received a disconnect."""
        if not self._has_started:
            status = HTTPStatus.NO_CONTENT
            await self.send({"type": "http.response.start", "status": status, "headers": []})
        if not self._has_ended:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})
