"""Subscriptions to Redis channels."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from decisions.foundation.infra.redis import connect

if TYPE_CHECKING:
    from redis.asyncio.client import PubSub

QUIET_S = 15.0  # after this long without a message the connection is checked with a ping


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
