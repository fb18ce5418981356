"""Tools that differ from caller to caller, and telling clients that their list is another one.

A client of the handshake's era is told on its own stream (stdio, `/sse`); over `/mcp` it has none,
and asks again by itself. In 2026-07-28 a client asks to be told (`subscriptions/listen`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import mcp_types as types
from django.db import Error as DatabaseError
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import INTERNAL_ERROR

from decisions.errors import Refused
from decisions.infra.threads import in_thread
from mcp_server.protocol.request_context import MessageContext, context_of
from mcp_server.protocol.transport import Transport
from mcp_server.tools.registry import CallerToolSource, McpTool

PATIENCE_S = 3.0  # a list does not wait longer for a home that is being prepared: it is told later
LOOK_S = 5.0  # between two looks at a list
MAX_LISTENING = 256  # streams of `subscriptions/listen` in one process
Tell = Callable[[], Awaitable[None]]
Looked = list[tuple[str, str, dict[str, Any]]]


class ToolListWatch:
    """Looks after one client's list for as long as its stream is open."""

    def __init__(self) -> None:
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    @asynccontextmanager
    async def of_stream(cls, server: object) -> AsyncIterator[ToolListWatch]:
        """Return what a stream has for the length of its life."""
        watch = cls()
        try:
            yield watch
        finally:
            if watch._watching is not None:
                watch._watching.cancel()
                await asyncio.wait([watch._watching])

    def begin(self, watching: Callable[[], Awaitable[None]]) -> None:
        """Watch from now on, unless it does already."""
        if self._watching is None:
            self._watching = asyncio.ensure_future(watching())


class CallerTools:
    """What the toolsets offer whose tools depend on who calls."""

    def __init__(
        self, sources: Sequence[CallerToolSource], transport: Transport, taken: Collection[str]
    ) -> None:
        self._sources, self._transport, self._taken = sources, transport, taken
        self._listening = 0

    async def of(self, context: MessageContext) -> dict[str, McpTool]:
        """Return a caller's tools by name, those too that are not on its list.

        Raises:
            Refused: The caller cannot be admitted.
        """
        found: dict[str, McpTool] = {}
        if self._sources:
            principal = await self._transport.authenticate(context, needs_stack=False)
            for source in self._sources:
                found |= await in_thread(source, principal, [*self._taken, *found])
        return found

    async def listed(self, context: MessageContext) -> list[McpTool]:
        """Return the tools that a caller's list has beside our own; none where they cannot be had
        now: our own are listed whatever happens.
        """
        with suppress(Refused, TimeoutError, DatabaseError):
            async with asyncio.timeout(PATIENCE_S):
                return _on_list(await self.of(context))
        return []

    def watch(self, ctx: ServerRequestContext[ToolListWatch], shown: Sequence[McpTool]) -> None:
        """Tell the client of a stream from now on when its list is another than what it was
        shown.
        """
        has_stream = ctx.request is None or isinstance(ctx.request, MessageContext)
        if has_stream and self._sources:
            context, tell = context_of(ctx.request), ctx.session.send_tool_list_changed
            ctx.lifespan_context.begin(lambda: self._tell_changes(context, tell, _looks(shown)))

    async def listen(
        self,
        ctx: ServerRequestContext[ToolListWatch],
        params: types.SubscriptionsListenRequestParams,
    ) -> types.SubscriptionsListenResult:
        """Serve a `subscriptions/listen`: of all that may be asked for, the list of tools alone
        changes.

        Raises:
            MCPError: Too many listen, or the caller cannot be admitted.
        """
        context, bus = context_of(ctx.request), InMemorySubscriptionBus()
        if self._listening >= MAX_LISTENING:
            raise MCPError(INTERNAL_ERROR, f"{MAX_LISTENING} streams are listening already.")
        asked = types.SubscriptionFilter(tools_list_changed=params.notifications.tools_list_changed)
        shown = _looks(await self.listed(context))

        async def tell() -> None:
            await bus.publish(ToolsListChanged())

        self._listening += 1
        watching = asyncio.create_task(self._tell_changes(context, tell, shown))
        try:
            wanted = params.model_copy(update={"notifications": asked})
            return await ListenHandler(bus)(ctx, wanted)
        finally:
            self._listening -= 1
            watching.cancel()

    async def _tell_changes(self, context: MessageContext, tell: Tell, known: Looked) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(Refused, DatabaseError):
                found = _looks(_on_list(await self.of(context)))
                if found != known:
                    known = found
                    await tell()


def _on_list(tools: dict[str, McpTool]) -> list[McpTool]:
    return [tool for tool in tools.values() if tool.is_listed]


def _looks(tools: Sequence[McpTool]) -> Looked:
    return [(tool.name, tool.description, tool.input_schema) for tool in tools]
