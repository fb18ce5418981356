"""MCP over HTTP as one ASGI application; `late.py` loads it at the first call."""

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
    """What stands at a path."""

    method: ClassVar[str]

    async def serve(self, exchange: Exchange) -> None:
        """Answer an admitted request, or raise before anything was answered."""


class McpApplication:
    """All paths of MCP, for one event loop."""

    def __init__(self) -> None:
        server = ContinuityServer(settings.CONTINUITY_MCP_TOOLSETS, HttpTransport())
        self._streamable, streams = StreamableEndpoint(server), SseEndpoint(server)
        self._endpoints: dict[str, Endpoint] = {
            "/mcp": self._streamable,
            "/sse": streams,
            "/messages": MessagesEndpoint(streams),
        }
        self._over = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Let the SDK serve until `close`; its tasks want one task to begin and end in."""
        ready = asyncio.Event()
        self._life = asyncio.create_task(self._live(ready))
        await ready.wait()

    async def _live(self, ready: asyncio.Event) -> None:
        async with self._streamable.run():
            ready.set()
            await self._over.wait()

    async def close(self) -> None:
        """End every call under way."""
        self._over.set()
        if self._life is not None:
            await self._life

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Admit and answer one request."""
        endpoint = self._endpoints[scope["path"].rstrip("/")]
        answer = _Answer(send)
        exchange = Exchange(scope, receive, answer.send)
        try:
            await exchange.authenticate()
            await endpoint.serve(exchange)
        except Exception as error:
            if answer.has_begun:
                raise
            await exchange.refuse(error, allow=endpoint.method)


class _Answer:
    """Remembers whether an answer has begun: from then on no other can be given."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self.has_begun = False

    async def send(self, message: Any) -> None:
        """Pass an event of ASGI on."""
        self.has_begun = True
        await self._send(message)
