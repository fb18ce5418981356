"""What a transport knows about a message besides its text: the caller and the parser's refusal.

The SDK passes an object of the transport on to the handlers as `ctx.request`: over stdio and SSE a
`MessageContext`, over streamable HTTP the request, whose ASGI scope holds one.
"""

from __future__ import annotations

from dataclasses import dataclass

from decisions.foundation.errors import Refused
from decisions.identity.principals import Principal

SCOPE_KEY = "continuity.message_context"


@dataclass(frozen=True, slots=True)
class MessageContext:
    """The context of one message.

    Attributes:
        principal: The caller, where the transport authenticates by token.
        refused: Why the parser removed the arguments of this tools/call.
    """

    principal: Principal | None = None
    refused: Refused | None = None


_EMPTY = MessageContext()


def traceparent_of(meta: object, request: object) -> object:
    """Return the W3C traceparent of a message: from its _meta, else from the HTTP header."""
    in_meta = meta.get("traceparent") if isinstance(meta, dict) else None
    return in_meta if in_meta is not None else getattr(request, "headers", {}).get("traceparent")


def context_of(request: object) -> MessageContext:
    """Return the message context that a handler's `ctx.request` is or holds."""
    if isinstance(request, MessageContext):
        return request
    found = getattr(request, "scope", {}).get(SCOPE_KEY)
    return found if isinstance(found, MessageContext) else _EMPTY
