"""What the web processes and the workers say to each other about live pages, over Redis.

Everybody with a page hears `UP`; who looks at a task hears that task's own channel. All of it is
sealed with the installation's key: pictures and what people type are readable to nobody on the way,
and nobody else has a say. Nothing is kept; what is lost is lost.
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
WATCH_S = 2.0  # who looks says so this often
GONE_S = 7.0  # who was not heard of for so long looks no more
RETRY_S = 1.0  # after a failure


def viewers_channel(task_id: str) -> str:
    """Return the channel of those who look at a task."""
    return f"{WORKERS_CHANNEL}:{task_id}"


def seal_message(message: Mapping[str, Any]) -> bytes:
    """Return a message as it goes over Redis."""
    return seal(orjson.dumps(message))


def open_message(sealed: bytes) -> dict[str, Any] | None:
    """Return what was said; None where it is not one of ours."""
    try:
        message = orjson.loads(unseal(sealed))
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def connect(*, blocking: bool) -> Redis:
    """Return a client; one that hears waits for as long as nothing is said."""
    from redis.asyncio import Redis  # needed where somebody looks, and nowhere at the start

    timeout = None if blocking else 2
    return Redis.from_url(settings.REDIS_URL, socket_timeout=timeout, socket_connect_timeout=2)
