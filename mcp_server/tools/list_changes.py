"""Tools that depend on the caller, and notifications when a client's tool list changes.

A client of the handshake protocol versions is notified on its own stream (stdio, `/sse`); over
`/mcp` it has no stream and lists the tools again by itself. In version 2026-07-28 a client
subscribes with `subscriptions/listen`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import mcp_types as types
from django.db import Error
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import INTERNAL_ERROR

from decisions.foundation.errors import Refused
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import is_credential_active
from mcp_server.protocol.request_context import MessageContext, context_of
from mcp_server.protocol.transport import Transport
from mcp_server.tools.registry import CallerToolSource, Connection, McpTool

LIST_TIMEOUT_S = 3.0  # for a home that is still being prepared; a change is notified later
POLL_S = 5.0  # between two checks of a list
MAX_LISTENERS = 256  # streams of `subscriptions/listen` in one process
Notify = Callable[[], Awaitable[None]]
ListState = list[tuple[str, str, dict[str, Any]]]


class ToolListWatch:
    """The task that watches one client's tool list while the client's stream is open.

    Attributes:
        connection: what the server remembers of that stream.
    """

    def __init__(self) -> None:
        self.connection = Connection()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    @asynccontextmanager
    async def of_stream(cls, server: object) -> AsyncIterator[ToolListWatch]:
        """Yield the watch of one stream, and cancel it at the end (the SDK's lifespan)."""
        watch = cls()
        try:
            yield watch
        finally:
            if watch._task is not None:
                watch._task.cancel()
                await asyncio.wait([watch._task])

    def start(self, watch: Callable[[], Awaitable[None]]) -> None:
        """Start watching; does nothing if it already watches."""
        if self._task is None:
            self._task = asyncio.ensure_future(watch())


class CallerTools:
    """The tools of those toolsets whose tools depend on the caller."""

    def __init__(
        self, sources: Sequence[CallerToolSource], transport: Transport, taken: Collection[str]
    ) -> None:
        self._sources, self._transport, self._taken = sources, transport, taken
        self._listeners = 0

    async def of(self, context: MessageContext) -> dict[str, McpTool]:
        """Return a caller's tools by name, including those that are not listed.

        Raises:
            Refused: The caller cannot be authenticated.
        """
        found: dict[str, McpTool] = {}
        if self._sources:
            principal = await self._transport.authenticate(context, needs_stack=False)
            for source in self._sources:
                found |= await in_thread(source, principal, [*self._taken, *found])
        return found

    async def listed(self, context: MessageContext) -> list[McpTool]:
        """Return the caller's listed tools; none where they cannot be read now, so that the
        static tools are listed in any case.
        """
        with suppress(Refused, TimeoutError, Error):
            async with asyncio.timeout(LIST_TIMEOUT_S):
                return _only_listed(await self.of(context))
        return []

    def watch(self, ctx: ServerRequestContext[ToolListWatch], listed: Sequence[McpTool]) -> None:
        """Notify the client of a stream whenever its list changes from the one it received."""
        has_stream = ctx.request is None or isinstance(ctx.request, MessageContext)
        if has_stream and self._sources:
            context, notify = context_of(ctx.request), ctx.session.send_tool_list_changed
            ctx.lifespan_context.start(
                lambda: self._notify_changes(context, notify, _state(listed))
            )

    async def listen(
        self,
        ctx: ServerRequestContext[ToolListWatch],
        params: types.SubscriptionsListenRequestParams,
    ) -> types.SubscriptionsListenResult:
        """Serve a `subscriptions/listen` request; the only subscription is the tool list.

        Raises:
            MCPError: This process has MAX_LISTENERS such streams already.
        """
        context, bus = context_of(ctx.request), InMemorySubscriptionBus()
        if self._listeners >= MAX_LISTENERS:
            raise MCPError(INTERNAL_ERROR, f"{MAX_LISTENERS} streams are open; close one first.")
        granted = types.SubscriptionFilter(
            tools_list_changed=params.notifications.tools_list_changed
        )
        state = _state(await self.listed(context))

        async def notify() -> None:
            await bus.publish(ToolsListChanged())

        self._listeners += 1
        watching = asyncio.create_task(self._notify_changes(context, notify, state))
        try:
            granted_params = params.model_copy(update={"notifications": granted})
            return await ListenHandler(bus)(ctx, granted_params)
        finally:
            self._listeners -= 1
            watching.cancel()

    async def _notify_changes(
        self, context: MessageContext, notify: Notify, known: ListState
    ) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            with suppress(Refused, Error):
                state = _state(_only_listed(await self.of(context)))
                if state == known:
                    continue
                known = state
                principal = await self._transport.authenticate(context, needs_stack=False)
                if await in_thread(is_credential_active, principal):
                    await notify()


def _only_listed(tools: dict[str, McpTool]) -> list[McpTool]:
    return [tool for tool in tools.values() if tool.is_listed]


def _state(tools: Sequence[McpTool]) -> ListState:
    return [(tool.name, tool.description, tool.input_schema) for tool in tools]
