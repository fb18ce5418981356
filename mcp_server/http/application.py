"""MCP over HTTP as one ASGI application; `lazy_loading.py` imports it at the first request."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Protocol

from django.conf import settings

from mcp_server.http.access import HttpTransport
from mcp_server.http.exchange import Exchange
from mcp_server.http.sse import MessagesEndpoint, SseEndpoint
from mcp_server.http.streamable import StreamableEndpoint
from mcp_server.server import ContinuityServer


class Endpoint(Protocol):
    """The handler of one path."""

    method: ClassVar[str]

    async def serve(self, exchange: Exchange) -> None:
        """Handle an authenticated request; it raises only before it has started the response."""


class McpApplication:
    """The MCP paths, for one event loop."""

    def __init__(self) -> None:
        server = ContinuityServer(settings.CONTINUITY_MCP_TOOLSETS, HttpTransport())
        self._streamable, sse = StreamableEndpoint(server), SseEndpoint(server)
        self._endpoints: dict[str, Endpoint] = {
            "/mcp": self._streamable,
            "/sse": sse,
            "/messages": MessagesEndpoint(sse),
        }
        self._closing = asyncio.Event()
        self._sdk_task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the SDK; it serves until `close`."""
        ready = asyncio.Event()
        self._sdk_task = asyncio.create_task(self._run_sdk(ready))
        await ready.wait()

    async def _run_sdk(self, ready: asyncio.Event) -> None:
        # One task enters and exits the SDK's task group, as anyio requires.
        async with self._streamable.run():
            ready.set()
            await self._closing.wait()

    async def close(self) -> None:
        """Cancel every call in flight."""
        self._closing.set()
        if self._sdk_task is not None:
            await self._sdk_task

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Authenticate and handle one request."""
        endpoint = self._endpoints[scope["path"].rstrip("/")]
        response = _Response(send)
        exchange = Exchange(scope, receive, response.send)
        try:
            await exchange.authenticate()
            await endpoint.serve(exchange)
        except Exception as error:
            if response.has_started:
                raise
            await exchange.respond_error(error, allow=endpoint.method)


class _Response:
    """Records whether the response has started: after that no error response can be sent."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self.has_started = False

    async def send(self, message: Any) -> None:
        """Send an ASGI event."""
        self.has_started = True
        await self._send(message)
