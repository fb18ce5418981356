"""The older transport over HTTP (2024-11-05): a stream at `/sse`, messages to `/messages/`.

A stream is a session of one client in this process: its messages have to come to the same process
and with the same token's principal.
"""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import Any, ClassVar

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types.jsonrpc import JSONRPCError

from decisions.errors import NotFound
from mcp_server.http.exchange import Exchange, as_error, parse_body
from mcp_server.protocol.encoding import encode
from mcp_server.protocol.request_context import MessageContext, context_of
from mcp_server.server import ContinuityServer

MESSAGES = "/messages/"
KEEP_ALIVE_S = 15.0  # a comment this often, so that proxies keep a quiet stream open
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
ToServer = MemoryObjectSendStream[SessionMessage | Exception]
ToClient = MemoryObjectSendStream[SessionMessage]


class NoSuchStream(NotFound):
    """No stream of this caller has the session id."""

    code = "NOT_FOUND"
    recovery = "Open a stream at /sse and send messages to the address that it names first."


class SseEndpoint:
    """What stands at `/sse`, and the streams that are open."""

    method: ClassVar[str] = "GET"

    def __init__(self, server: ContinuityServer) -> None:
        self._server = server
        self._open: dict[str, tuple[str, ToServer, ToClient]] = {}

    async def serve(self, exchange: Exchange) -> None:
        """Serve one client until it leaves.

        Raises:
            Refused, MethodNotAllowed: Before anything was answered.
        """
        exchange.require_method(self.method)
        exchange.require_accept("text/event-stream")
        to_server, inbox = anyio.create_memory_object_stream[SessionMessage | Exception]()
        to_client, outbox = anyio.create_memory_object_stream[SessionMessage]()
        session = secrets.token_hex(16)
        self._open[session] = exchange.principal.id, to_server, to_client.clone()
        try:
            async with to_server, outbox, anyio.create_task_group() as tasks:
                tasks.start_soon(self._run, inbox, to_client, tasks)
                tasks.start_soon(_until_gone, exchange.receive, tasks)
                await _write(exchange, session, outbox)
        finally:
            self._open.pop(session)[2].close()

    async def _run(
        self,
        inbox: MemoryObjectReceiveStream[SessionMessage | Exception],
        to_client: ToClient,
        tasks: TaskGroup,
    ) -> None:
        options = self._server.stream_options()
        await self._server.run(inbox, to_client, options)
        tasks.cancel_scope.cancel()

    async def take(self, exchange: Exchange) -> None:
        """Take a message for a stream of the same caller.

        Raises:
            Refused: Before anything was answered.
        """
        session = str(exchange.request.GET.get("session_id", ""))
        owner, to_server, to_client = self._open.get(session, ("", None, None))
        if to_server is None or to_client is None or owner != exchange.principal.id:
            raise NoSuchStream("There is no stream with this session_id.")
        exchange.require_json()
        body = await exchange.body()
        if body is None:
            return
        verdict = await parse_body(body)
        if isinstance(verdict, JSONRPCError) and verdict.id is None:
            await exchange.answer_json(as_error(verdict), HTTPStatus.BAD_REQUEST)
            return
        await exchange.answer_json(None, HTTPStatus.ACCEPTED)
        try:
            if isinstance(verdict, JSONRPCError):
                await to_client.send(SessionMessage(verdict))
            else:
                await to_server.send(_with_company(verdict, exchange))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the client left meanwhile


class MessagesEndpoint:
    """What stands at `/messages/`."""

    method: ClassVar[str] = "POST"

    def __init__(self, streams: SseEndpoint) -> None:
        self._streams = streams

    async def serve(self, exchange: Exchange) -> None:
        """Take one message.

        Raises:
            Refused, MethodNotAllowed: Before anything was answered.
        """
        exchange.require_method(self.method)
        await self._streams.take(exchange)


def _with_company(message: SessionMessage, exchange: Exchange) -> SessionMessage:
    refused = context_of(getattr(message.metadata, "request_context", None)).refused
    company = MessageContext(exchange.principal, refused)
    return SessionMessage(message.message, ServerMessageMetadata(request_context=company))


async def _until_gone(receive: Any, tasks: TaskGroup) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    tasks.cancel_scope.cancel()


async def _write(
    exchange: Exchange, session: str, outbox: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    """Name the address for messages, then send each message as it comes."""
    start = {"type": "http.response.start", "status": HTTPStatus.OK, "headers": HEADERS}
    await exchange.send(start)
    address = f"{exchange.scope.get('root_path', '')}{MESSAGES}?session_id={session}"
    await _send(exchange, b"event: endpoint\ndata: %b\n\n" % address.encode())
    while True:
        line = b": still there\n\n"
        with anyio.move_on_after(KEEP_ALIVE_S):
            message = await outbox.receive()
            line = b"event: message\ndata: %b\n\n" % encode(message.message)
        await _send(exchange, line)


async def _send(exchange: Exchange, piece: bytes) -> None:
    await exchange.send({"type": "http.response.body", "body": piece, "more_body": True})
