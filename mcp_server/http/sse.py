"""The older HTTP+SSE transport (2024-11-05): a stream at `/sse`, messages to `/messages/`.

A stream is one client's session in this process: its messages must reach the same process, and with
a token of the same principal.
"""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types.jsonrpc import JSONRPCError

from decisions.identity.principals import Principal
from mcp_server.http.access import wait_until_credential_ends
from mcp_server.http.exchange import Exchange, error_body, parse_body
from mcp_server.http.session_ids import UnknownMcpSession
from mcp_server.protocol.encoding import encode
from mcp_server.protocol.request_context import MessageContext, context_of
from mcp_server.server import ContinuityServer

MESSAGES = "/messages/"
KEEP_ALIVE_S = 15.0  # between comments that keep proxies from closing an idle stream
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
ToServer = MemoryObjectSendStream[SessionMessage | Exception]
ToClient = MemoryObjectSendStream[SessionMessage]


class SseEndpoint:
    """The handlers of `/sse` and `/messages/`, with the open streams."""

    def __init__(self, server: ContinuityServer) -> None:
        self._server = server
        self._open: dict[str, tuple[str, ToServer, ToClient]] = {}

    async def serve(self, exchange: Exchange) -> None:
        """Serve one stream until the client disconnects or its token becomes invalid.

        Raises:
            Refused: Before the response has started.
        """
        exchange.require_accept("text/event-stream")
        to_server, inbox = anyio.create_memory_object_stream[SessionMessage | Exception]()
        to_client, outbox = anyio.create_memory_object_stream[SessionMessage]()
        session_id = secrets.token_hex(16)
        self._open[session_id] = exchange.principal.id, to_server, to_client.clone()
        try:
            async with to_server, outbox, anyio.create_task_group() as tasks:
                tasks.start_soon(self._run, inbox, to_client, tasks)
                tasks.start_soon(_cancel_on_disconnect, exchange.receive, tasks)
                tasks.start_soon(_cancel_with_credential, exchange.principal, tasks)
                await _write(exchange, session_id, outbox)
        finally:
            self._open.pop(session_id)[2].close()
        await exchange.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _run(
        self,
        inbox: MemoryObjectReceiveStream[SessionMessage | Exception],
        to_client: ToClient,
        tasks: TaskGroup,
    ) -> None:
        options = self._server.stream_options()
        await self._server.run(inbox, to_client, options)
        tasks.cancel_scope.cancel()

    async def accept_message(self, exchange: Exchange) -> None:
        """Pass a message to a stream of the same caller.

        Raises:
            Refused: Before the response has started.
        """
        session_id = str(exchange.request.GET.get("session_id", ""))
        owner, to_server, to_client = self._open.get(session_id, ("", None, None))
        if to_server is None or to_client is None or owner != exchange.principal.id:
            raise UnknownMcpSession(
                "You have no open stream with this session_id.",
                recovery="Open a stream at /sse and send messages to the address in its first"
                " event.",
            )
        exchange.require_json()
        body = await exchange.body()
        if body is None:
            return
        parsed = await parse_body(body)
        if isinstance(parsed, JSONRPCError) and parsed.id is None:
            await exchange.respond_json(error_body(parsed), HTTPStatus.BAD_REQUEST)
            return
        await exchange.respond_json(None, HTTPStatus.ACCEPTED)
        try:
            if isinstance(parsed, JSONRPCError):
                await to_client.send(SessionMessage(parsed))
            else:
                await to_server.send(_with_context(parsed, exchange))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the client has closed the stream


def _with_context(message: SessionMessage, exchange: Exchange) -> SessionMessage:
    refused = context_of(getattr(message.metadata, "request_context", None)).refused
    context = MessageContext(exchange.principal, refused)
    return SessionMessage(message.message, ServerMessageMetadata(request_context=context))


async def _cancel_on_disconnect(receive: Any, tasks: TaskGroup) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    tasks.cancel_scope.cancel()


async def _cancel_with_credential(principal: Principal, tasks: TaskGroup) -> None:
    await wait_until_credential_ends(principal)
    tasks.cancel_scope.cancel()


async def _write(
    exchange: Exchange, session_id: str, outbox: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    """Send the address for messages, then each message of the server."""
    start = {"type": "http.response.start", "status": HTTPStatus.OK, "headers": HEADERS}
    await exchange.send(start)
    address = f"{exchange.scope.get('root_path', '')}{MESSAGES}?session_id={session_id}"
    await _send(exchange, b"event: endpoint\ndata: %b\n\n" % address.encode())
    while True:
        event = b": keep-alive\n\n"
        with anyio.move_on_after(KEEP_ALIVE_S):
            message = await outbox.receive()
            event = b"event: message\ndata: %b\n\n" % encode(message.message)
        await _send(exchange, event)


async def _send(exchange: Exchange, event: bytes) -> None:
    await exchange.send({"type": "http.response.body", "body": event, "more_body": True})
