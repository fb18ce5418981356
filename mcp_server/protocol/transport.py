"""What the MCP server requires of a transport: the caller of each message."""

from __future__ import annotations

from typing import Protocol

from decisions.identity.principals import Principal
from mcp_server.protocol.request_context import MessageContext


class Transport(Protocol):
    """A transport, as far as the server depends on it."""

    async def authenticate(self, context: MessageContext, *, needs_stack: bool) -> Principal:
        """Return the caller, once the database and, if `needs_stack`, a worker are available.

        Raises:
            Refused: The caller is not authenticated, or what the call needs is not available.
        """
