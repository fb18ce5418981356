"""The place of MCP over HTTP in the dispatcher: it loads the SDK when the first agent calls.

The SDK takes longer to import than Django and all our parts together, and who calls REST alone
should not wait for it at every start.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_server.http.application import McpApplication

PATHS = frozenset({"/mcp", "/mcp/", "/sse", "/sse/", "/messages", "/messages/"})


class LazyMcpApplication:
    """An ASGI application for the paths in PATHS."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._doors: McpApplication | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        doors = self._doors or await self._open()
        await doors(scope, receive, send)

    async def close(self) -> None:
        """End every call that is under way; the process ends."""
        doors, self._doors = self._doors, None
        if doors is not None:
            await doors.close()

    async def _open(self) -> McpApplication:
        async with self._lock:
            if self._doors is None:
                # On a thread: other requests are answered meanwhile.
                module = await asyncio.to_thread(
                    importlib.import_module, "mcp_server.http.application"
                )
                doors: McpApplication = module.McpApplication()
                await doors.open()
                self._doors = doors
            return self._doors
