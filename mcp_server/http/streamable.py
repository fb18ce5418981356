"""Streamable HTTP at `/mcp`: the gate, then the SDK, which serves both protocol eras.

Nothing is kept between requests. The session id that `initialize` answers with is a mere label of
the client (`labels`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCError, JSONRPCNotification, JSONRPCRequest

from decisions.api.drf import throttle_request
from decisions.infra.json_line import escape_line_separators
from decisions.validation.json_input import CALL_LIMIT
from mcp_server.http.batch import ResponseCollector, may_be_batch, parse_batch
from mcp_server.http.exchange import BOTH_TYPES, Exchange, as_error, parse_body
from mcp_server.http.session_ids import HEADER as LABEL
from mcp_server.http.session_ids import new_session_id, validate_session_id
from mcp_server.protocol.encoding import encode
from mcp_server.protocol.request_context import SCOPE_KEY, MessageContext, context_of
from mcp_server.server import ContinuityServer

CallName = tuple[str, str, str | int]  # principal, label, request id


class StreamableEndpoint:
    """What stands at `/mcp`."""

    method: ClassVar[str] = "POST"

    def __init__(self, server: ContinuityServer) -> None:
        self._sdk = StreamableHTTPSessionManager(
            server, stateless=True, max_request_body_size=2 * CALL_LIMIT
        )
        self._under_way: dict[CallName, asyncio.Event] = {}

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Let requests be served for the length of a block."""
        async with self._sdk.run():
            yield

    async def serve(self, exchange: Exchange) -> None:
        """Answer one admitted request.

        Raises:
            Refused, MethodNotAllowed: Before anything was answered.
        """
        exchange.require_method(self.method)
        exchange.require_json()
        exchange.require_accept(*BOTH_TYPES)
        validate_session_id(exchange.header(LABEL))
        body = await exchange.body()
        if body is None:
            return
        if may_be_batch(exchange.header("MCP-Protocol-Version"), body):
            await self._serve_batch(exchange, body)
            return
        verdict = await parse_body(body)
        if isinstance(verdict, JSONRPCError):
            await exchange.answer_json(as_error(verdict), HTTPStatus.BAD_REQUEST)
            return
        await self._serve_message(exchange, verdict, exchange.send)

    async def _serve_message(self, exchange: Exchange, message: SessionMessage, send: Any) -> None:
        content = message.message
        if isinstance(content, JSONRPCNotification):
            self._cancel(exchange, content)
        is_first = isinstance(content, JSONRPCRequest) and content.method == "initialize"
        outbound = _Outbound(send, label=new_session_id() if is_first else "")
        refused = context_of(getattr(message.metadata, "request_context", None)).refused
        scope = {**exchange.scope, SCOPE_KEY: MessageContext(exchange.principal, refused)}
        with self._named(exchange, content) as taken_back:
            inbound = _Inbound(encode(content), exchange.receive, taken_back)
            await self._sdk.handle_request(scope, inbound.receive, outbound.send)
        if taken_back.is_set():
            await outbound.end()

    async def _serve_batch(self, exchange: Exchange, body: bytes) -> None:
        """Answer a batch, which the revision 2025-03-26 alone knows, with a batch."""
        found = await asyncio.to_thread(
            parse_batch, body, partial(throttle_request, exchange.request)
        )
        if isinstance(found, JSONRPCError):
            await exchange.answer_json(as_error(found), HTTPStatus.BAD_REQUEST)
            return
        answers = [ResponseCollector() for _ in found]
        async with asyncio.TaskGroup() as tasks:
            for verdict, answer in zip(found, answers, strict=True):
                if isinstance(verdict, JSONRPCError):
                    answer.found.append(as_error(verdict))
                else:
                    tasks.create_task(self._serve_message(exchange, verdict, answer.send))
        told = [each for answer in answers for each in answer.take()]
        await exchange.answer_json(told or None, HTTPStatus.OK if told else HTTPStatus.ACCEPTED)

    # --- calls that are taken back -----------------------------------------------------------

    @contextmanager
    def _named(self, exchange: Exchange, content: Any) -> Iterator[asyncio.Event]:
        """Let a request be found by who sent it while it is under way."""
        taken_back = asyncio.Event()
        name = _name(exchange, content.id) if isinstance(content, JSONRPCRequest) else None
        if name is None:
            yield taken_back
            return
        self._under_way[name] = taken_back
        try:
            yield taken_back
        finally:
            if self._under_way.get(name) is taken_back:
                del self._under_way[name]

    def _cancel(self, exchange: Exchange, content: JSONRPCNotification) -> None:
        if content.method != "notifications/cancelled":
            return
        request_id = (content.params or {}).get("requestId")
        name = _name(exchange, request_id) if isinstance(request_id, str | int) else None
        call = self._under_way.get(name) if name else None
        if call is not None:
            call.set()


def _name(exchange: Exchange, request_id: str | int) -> CallName | None:
    """Return what tells a client's call from every other, or None for a client without a label."""
    label = exchange.header(LABEL)
    return (exchange.principal.id, label, request_id) if label else None


class _Inbound:
    """A request as the SDK reads it: its body at once, then the caller's leaving or taking back."""

    def __init__(self, body: bytes, receive: Any, taken_back: asyncio.Event) -> None:
        self._body: bytes | None = body
        self._receive = receive
        self._taken_back = taken_back

    async def receive(self) -> MutableMapping[str, Any]:
        """Return the next event of ASGI."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        waits = [
            asyncio.ensure_future(self._receive()),
            asyncio.ensure_future(self._taken_back.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return {"type": "http.disconnect"}


class _Outbound:
    """The way back to the caller."""

    def __init__(self, send: Any, *, label: str) -> None:
        self._send = send
        self._label = label
        self._has_begun = self._has_ended = self._is_stream = False

    async def send(self, message: Mapping[str, Any]) -> None:
        """Pass an event of ASGI on; the first tells a new client its label."""
        if message["type"] == "http.response.start":
            self._has_begun = True
            types = [value for name, value in message["headers"] if name == b"content-type"]
            self._is_stream = any(value.startswith(b"text/event-stream") for value in types)
            if self._label:
                label = (LABEL.encode(), self._label.encode())
                message = {**message, "headers": [*message["headers"], label]}
        else:
            self._has_ended = not message.get("more_body", False)
            if self._is_stream:  # the SDK sends each event as one piece
                message = {**message, "body": escape_line_separators(message.get("body", b""))}
        await self._send(message)

    async def end(self) -> None:
        """End an answer that the SDK left open, since it takes the caller for gone."""
        if not self._has_begun:
            status = HTTPStatus.NO_CONTENT
            await self.send({"type": "http.response.start", "status": status, "headers": []})
        if not self._has_ended:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})
