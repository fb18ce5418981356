"""The Redis channels of paired browsers, between the web processes that have their sockets and the
processes that call them. All messages are sealed (`decisions.foundation.security.sealed_messages`).

The web process that has a browser's socket subscribes to the browser's channel; no other process
does, so the number of receivers of a message says whether the browser is connected.
"""

from __future__ import annotations

import secrets

from django.conf import settings


def control_channel() -> str:
    """Return a channel that keeps a subscription open while it follows no browser."""
    return _named("control")


def browser_channel(client_id: str) -> str:
    """Return the channel of messages to a browser."""
    return _named("client", client_id)


def snapshot_channel(client_id: str) -> str:
    """Return the channel on which a browser's state is published when it changes."""
    return _named("state", client_id)


def new_reply_channel() -> str:
    """Return a channel on which one event loop receives the answers to its calls."""
    return _named("replies", secrets.token_hex(8))


def key_of(kind: str, name: str) -> str:
    """Return a Redis key."""
    return _named(kind, name)


def _named(*parts: str) -> str:
    return ":".join((f"{settings.REDIS_PREFIX}plugin", *parts))
