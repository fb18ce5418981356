"""Messages about live pages between the web processes and the workers, over Redis pub/sub.

Every worker with an open page subscribes to WORKERS_CHANNEL; every viewer of a task subscribes to
that task's channel. All messages are encrypted and authenticated with the installation's key, so
Redis sees neither pictures nor typed text and cannot forge input. Messages are not stored: a lost
one stays lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson
from django.conf import settings

from decisions.security.keys import seal, unseal

if TYPE_CHECKING:
    from redis.asyncio import Redis

WORKERS_CHANNEL = "continuity:live"
ANNOUNCE_S = 2.0  # interval at which a viewer announces itself
VIEWER_TIMEOUT_S = 7.0  # after this long without an announcement there is no viewer
RETRY_S = 1.0  # pause after a failure


def viewers_channel(task_id: str) -> str:
    """Return the name of the channel of a task's viewers."""
    return f"{WORKERS_CHANNEL}:{task_id}"


def seal_message(message: Mapping[str, Any]) -> bytes:
    """Serialize and encrypt a message."""
    return seal(orjson.dumps(message))


def open_message(sealed: bytes) -> dict[str, Any] | None:
    """Decrypt and parse a message; None if it was not sealed with this installation's key."""
    try:
        message = orjson.loads(unseal(sealed))
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def connect(*, blocking: bool) -> Redis:
    """Return a Redis client; a blocking one, for a subscriber, has no socket timeout."""
    from redis.asyncio import Redis  # imported on first use, to keep it out of start-up

    timeout = None if blocking else 2
    return Redis.from_url(settings.REDIS_URL, socket_timeout=timeout, socket_connect_timeout=2)
