"""MCP over HTTP as one ASGI application; `lazy_loading.py` imports it at the first request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings
from rest_framework.exceptions import MethodNotAllowed

from mcp_server.http.access import HttpTransport
from mcp_server.http.exchange import Exchange
from mcp_server.http.sse import SseEndpoint
from mcp_server.http.streamable import StreamableEndpoint
from mcp_server.server import ContinuityServer


class McpApplication:
    """The MCP paths, for one event loop."""

    def __init__(self) -> None:
        server = ContinuityServer(settings.CONTINUITY_MCP_TOOLSETS, HttpTransport())
        self._streamable, sse = StreamableEndpoint(server), SseEndpoint(server)
        # Each path's method, and what handles an authenticated request.
        self._endpoints: dict[str, tuple[str, Callable[[Exchange], Awaitable[None]]]] = {
            "/mcp": ("POST", self._streamable.serve),
            "/sse": ("GET", sse.serve),
            "/messages": ("POST", sse.accept_message),
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
        method, serve = self._endpoints[scope["path"].rstrip("/")]
        exchange = Exchange(scope, receive, send)
        try:
            await exchange.authenticate()
            if scope["method"] != method:
                raise MethodNotAllowed(scope["method"])
            await serve(exchange)
        except Exception as error:
            if exchange.has_started:
                raise
            await exchange.respond_error(error, allow=method)
