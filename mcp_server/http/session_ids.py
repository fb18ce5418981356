"""The `Mcp-Session-Id` of clients: issued once, stored nowhere, and valid in every web process.

The token alone authenticates the caller. The session id distinguishes clients with the same token,
so that `notifications/cancelled`, which arrives in a request of its own, cancels the right call.
"""

from __future__ import annotations

import secrets

from decisions.foundation.errors import NotFound
from decisions.foundation.security.keys import mac, mac_matches

HEADER = "mcp-session-id"
_PURPOSE = "mcp-label"
_MAX = 256  # characters


class UnknownMcpSession(NotFound):
    """This server did not issue the Mcp-Session-Id, or the caller has no stream of this id."""

    code = "NOT_FOUND"
    recovery = "Call initialize without a session id, and use the one in its response."


def new_session_id() -> str:
    """Return a new session id: a random part and its signature."""
    random_part = secrets.token_urlsafe(16)
    return f"{random_part}.{mac(_PURPOSE, random_part.encode())}"


def validate_session_id(session_id: str) -> None:
    """Check the session id of a request; an empty one is valid.

    Raises:
        UnknownMcpSession: Its signature does not match any configured key.
    """
    if not session_id:
        return
    random_part, _, signature = session_id.partition(".")
    is_valid = len(session_id) <= _MAX and mac_matches(_PURPOSE, random_part.encode(), signature)
    if not is_valid:
        raise UnknownMcpSession("This server did not issue this Mcp-Session-Id.")
