"""What a transport knows of a message besides its text: who sent it, what the gate said of it.

The SDK hands a transport's own object on to the handlers (`ctx.request`): over stdio it is an
Incoming, over HTTP the request, whose scope holds one.
"""

from __future__ import annotations

from dataclasses import dataclass

from decisions.errors import Refused
from decisions.identity.principals import Principal

SCOPE_KEY = "continuity.incoming"


@dataclass(frozen=True, slots=True)
class MessageContext:
    """A message's company.

    Attributes:
        principal: who sent it, where the transport asks for a token.
        refused: why the gate took the arguments of its tool call away.
    """

    principal: Principal | None = None
    refused: Refused | None = None


NOTHING = MessageContext()


def traceparent_of(meta: object, request: object) -> object:
    """Return what a message says of the trace that it is part of: in its _meta, else in a header of
    the request that it came with.
    """
    told = meta.get("traceparent") if isinstance(meta, dict) else None
    return told if told is not None else getattr(request, "headers", {}).get("traceparent")


def context_of(request: object) -> MessageContext:
    """Return what came with the message that a handler works on."""
    if isinstance(request, MessageContext):
        return request
    found = getattr(request, "scope", {}).get(SCOPE_KEY)
    return found if isinstance(found, MessageContext) else NOTHING
