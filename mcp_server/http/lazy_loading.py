"""The ASGI application for the MCP paths, which imports the SDK at the first request to them.

The SDK takes longer to import than Django and all our code together, and a server that is used only
over REST should not wait for it at each start.
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
        self._application: McpApplication | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        application = self._application or await self._load()
        await application(scope, receive, send)

    async def close(self) -> None:
        """Cancel every call in flight, at the end of the process."""
        application, self._application = self._application, None
        if application is not None:
            await application.close()

    async def _load(self) -> McpApplication:
        async with self._lock:
            if self._application is None:
                # On a thread: the event loop serves other requests meanwhile.
                module = await asyncio.to_thread(
                    importlib.import_module, "mcp_server.http.application"
                )
                application: McpApplication = module.McpApplication()
                await application.start()
                self._application = application
            return self._application
