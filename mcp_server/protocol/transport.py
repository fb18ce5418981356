"""What a transport has to know for the server: who calls."""

from __future__ import annotations

from typing import Protocol

from decisions.identity.principals import Principal
from mcp_server.protocol.request_context import MessageContext


class Transport(Protocol):
    """The way a call came in."""

    async def authenticate(self, context: MessageContext, *, needs_stack: bool) -> Principal:
        """Return who calls, once everything is there that the call needs.

        Raises:
            Refused: The caller may not, or what the tool needs cannot be had.
        """
