"""Connections to Redis: new ones for asynchronous code, and a shared one for optional data, with
short timeouts and a circuit breaker: after a failure, calls return None at once for RETRY_AFTER_S.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings

from decisions.infra.outages import Outage

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis

RETRY_AFTER_S = 2.0
_TIMEOUT_S = 0.5
Result = TypeVar("Result")
log = logging.getLogger(__name__)


@cache
def _client(url: str) -> Redis:
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Redis.from_url(
        url,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
        retry=Retry(NoBackoff(), 1),  # at once: a pooled connection may be stale
    )


def connect(*, blocking: bool) -> AsyncRedis:
    """Return a Redis client; a blocking one, for a subscriber, has no socket timeout."""
    from redis.asyncio import (
        Redis as AsyncRedis,  # imported on first use, to keep it out of start-up
    )

    timeout = None if blocking else 2
    return AsyncRedis.from_url(settings.REDIS_URL, socket_timeout=timeout, socket_connect_timeout=2)


class SharedRedis:
    """The shared Redis connection, for one use of it; safe for threads.

    Args:
        effect: what does not work while Redis is unavailable, for the one warning of an outage.
    """

    def __init__(self, effect: str) -> None:
        self._closed_until = 0.0
        self._outage = Outage(
            log,
            on_failure=f"redis is unavailable; {effect} until it is back",
            on_recovery="redis is available again",
        )

    def execute(self, command: Callable[[Redis], Result]) -> Result | None:
        """Run a command and return its result, or None while Redis is unavailable."""
        if time.monotonic() < self._closed_until:
            return None
        from redis import RedisError  # imported at the first call, not at start-up

        try:
            result = command(_client(settings.REDIS_URL))
        except RedisError as error:
            self._closed_until = time.monotonic() + RETRY_AFTER_S
            self._outage.failed(error)
            return None
        self._outage.recovered()
        return result
