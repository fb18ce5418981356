"""An ASGI application on the web server's own protocol, with limits of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from runs.operations.web.connection_limits import (
    ConnectionLimits,
    OpenConnections,
    WebConfig,
)
from runs.operations.web.http_protocol import LimitedProtocol


@dataclass(frozen=True)
class AsgiServer:
    """A running server."""

    address: tuple[str, int]
    open_connections: OpenConnections


async def echo_size(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer with the size of the request's body."""
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serve_asgi(app: Any, limits: ConnectionLimits | None = None) -> AsyncIterator[AsgiServer]:
    """Serve on a free port of loopback for the length of the block."""
    config = WebConfig(
        app,
        limits=limits,
        port=0,
        http=LimitedProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())
    while not server.started:
        await asyncio.sleep(0.005)
    yield AsgiServer(server.servers[0].sockets[0].getsockname()[:2], config.open_connections)
    server.should_exit = True
    await task
