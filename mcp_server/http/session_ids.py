"""The `Mcp-Session-Id` of clients: told once, kept nowhere, and known again by any web process.

It says nothing of who calls; the token does. It lets `notifications/cancelled`, which comes as a
request of its own, find the call that it means among those of other clients with the same token.
"""

from __future__ import annotations

import secrets

from decisions.errors import NotFound
from decisions.security.keys import mac, mac_matches

HEADER = "mcp-session-id"
_PURPOSE = "mcp-label"
_MAX = 256  # characters


class UnknownMcpSession(NotFound):
    """The session id is none that this server gave out."""

    code = "NOT_FOUND"
    recovery = "Call initialize without a session id, and use the one that it answers with."


def new_session_id() -> str:
    """Return a fresh label: chance, and our mark on it."""
    chance = secrets.token_urlsafe(16)
    return f"{chance}.{mac(_PURPOSE, chance.encode())}"


def validate_session_id(label: str | None) -> str | None:
    """Return the label that came with a request, if one did.

    Raises:
        NoSuchSession: We did not give it out, or under a key that is no longer configured.
    """
    if not label:
        return None
    chance, _, mark = label.partition(".")
    is_ours = len(label) <= _MAX and mac_matches(_PURPOSE, chance.encode(), mark)
    if not is_ours:
        raise UnknownMcpSession("This server gave out no such Mcp-Session-Id.")
    return label
