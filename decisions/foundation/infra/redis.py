"""Connections to Redis: new ones and subscriptions for asynchronous code, and a shared one for
optional data, with short timeouts and a circuit breaker: after a failure, calls return None at once
for RETRY_AFTER_S.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings

from decisions.foundation.infra.outages import Outage

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis
    from redis.asyncio.client import PubSub

RETRY_AFTER_S = 2.0
QUIET_S = 15.0  # after this long without a message a subscription is checked with a ping
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


@cache
def redis_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that a Redis client raises: no connection, a refused command (a server
    that is read-only, full, loading), no answer in time, or an answer that is none of Redis.
    """
    from redis import RedisError  # imported at the first call, not at start-up

    return RedisError, OSError, ValueError  # of a number that is none


def connect(*, blocking: bool) -> AsyncRedis:
    """Return a Redis client; a blocking one, for a subscriber, has no socket timeout."""
    from redis.asyncio import (
        Redis as AsyncRedis,  # imported on first use, to keep it out of start-up
    )

    timeout = None if blocking else 2
    return AsyncRedis.from_url(settings.REDIS_URL, socket_timeout=timeout, socket_connect_timeout=2)


@asynccontextmanager
async def subscription(*names: str) -> AsyncIterator[PubSub]:
    """Subscribe to channels over a connection of its own, until the end of the block.

    Raises:
        redis_errors(): Redis is unavailable.
    """
    client = connect(blocking=True)
    try:
        async with client.pubsub() as channel:
            await channel.subscribe(*names)
            yield channel
    finally:
        await client.aclose()


async def messages_of(channel: PubSub) -> AsyncIterator[Mapping[str, Any]]:
    """Yield {type, channel, data}: each message, and the confirmation of each subscription (type
    `subscribe`).

    Raises:
        redis_errors(): The connection broke, or did not answer a ping.
    """
    is_pinged = False
    while True:
        message = await channel.get_message(timeout=QUIET_S)
        if message is None:
            if is_pinged:
                raise ConnectionError("redis did not answer a ping")
            await channel.ping()
        is_pinged = message is None
        if message is not None and message["type"] in ("subscribe", "message"):
            yield message


_faults: dict[str, tuple[float, str]] = {}  # by URL: until when none is looked for, the last one


def describe_redis_fault() -> str | None:
    """Return what keeps Redis from working, in a sentence without its address; None if it takes
    writes. Waits a second at most, and asks again only after RETRY_AFTER_S where it did not work.
    """
    url = settings.REDIS_URL
    until, fault = _faults.get(url, (0.0, ""))
    if time.monotonic() < until:
        return fault
    try:
        _client(url).set(f"{settings.REDIS_PREFIX}probe", 1, px=100)  # a key that expires at once
    except redis_errors() as error:
        fault = _words_for(error)
        _faults[url] = (time.monotonic() + RETRY_AFTER_S, fault)
        return fault
    return None


def _words_for(error: Exception) -> str:
    from redis import exceptions

    words: tuple[tuple[type[Exception], str], ...] = (
        (exceptions.BusyLoadingError, "Redis is loading its data."),
        (exceptions.ReadOnlyError, "Redis is a replica, which takes no writes."),
        (exceptions.OutOfMemoryError, "Redis is full: it has reached maxmemory."),
        (exceptions.AuthenticationError, "Redis refuses the password of REDIS_URL."),
        (exceptions.TimeoutError, "Redis did not answer in time."),
        (exceptions.ConnectionError, "Redis accepts no connection."),
        (exceptions.InvalidResponse, "What answers at REDIS_URL is not Redis."),
        (exceptions.ResponseError, f"Redis refuses writes ({str(error).partition(' ')[0]})."),
        (OSError, "Redis accepts no connection."),
    )
    found = (text for kind, text in words if isinstance(error, kind))
    return next(found, "What answers at REDIS_URL is not Redis.")


class SharedRedis:
    """The shared Redis connection, for one use of it; safe for threads.

    Args:
        effect: what does not work while Redis is unavailable, for the one warning of an outage.
    """

    def __init__(self, effect: str) -> None:
        self._closed: dict[str, float] = {}  # URLs, and until when none is tried
        self._outage = Outage(
            log,
            on_failure=f"redis is unavailable; {effect} until it is back",
            on_recovery="redis is available again",
        )

    def execute(self, command: Callable[[Redis], Result]) -> Result | None:
        """Run a command and return its result, or None while Redis is unavailable."""
        url = settings.REDIS_URL
        if time.monotonic() < self._closed.get(url, 0.0):
            return None
        try:
            result = command(_client(url))
        except redis_errors() as error:
            self._closed[url] = time.monotonic() + RETRY_AFTER_S
            self._outage.failed(error)
            return None
        self._outage.recovered()
        return result
