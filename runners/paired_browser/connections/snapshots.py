"""Snapshots: the last known state of each browser, sealed in Redis for an hour.

The web process with the browser's socket writes it; any process reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from decisions.foundation.infra.clock import now_ms
from decisions.foundation.infra.redis import SharedRedis
from decisions.foundation.security.keys import seal, unseal
from decisions.foundation.security.sealed_messages import seal_message
from runners.models import PluginClient
from runners.paired_browser.messaging.channel import key_of, snapshot_channel
from runners.paired_browser.pairing.selectors import is_connected

if TYPE_CHECKING:
    from redis.asyncio import Redis

KEPT_S = 3600
STALE_MS = 30_000
_PURPOSE = "plugin snapshot"
_redis = SharedRedis("the windows and tabs of paired browsers are not shown")
Snapshot = dict[str, Any]  # {seq, at, state}


async def write_snapshots(client: Redis, states: Iterable[tuple[str, Snapshot]]) -> None:
    """Keep the states of browsers, by client id, and publish them to who follows them.

    Raises:
        redis_errors(): Redis is unavailable.
    """
    async with client.pipeline(transaction=False) as pipe:
        for client_id, snapshot in states:
            sealed = seal(orjson.dumps(snapshot), purpose=_PURPOSE, bound_to=client_id)
            pipe.set(key_of("snapshot", client_id), sealed, ex=KEPT_S)
            channel = snapshot_channel(client_id)
            pipe.publish(channel, seal_message(channel, snapshot))
        await pipe.execute()


def read_snapshot(client: PluginClient) -> dict[str, Any]:
    """Return {clientId, connected, stale, seq, updatedAt, state} of a browser; the last three are
    null if its state is not known.

    It is stale if the browser is not connected, or has not sent its state for STALE_MS.
    """
    sealed = _redis.execute(lambda redis: redis.get(key_of("snapshot", client.id)))
    snapshot = _unsealed(sealed if isinstance(sealed, bytes) else None, client.id)
    is_online = is_connected(client)
    is_old = snapshot.get("at", 0) < now_ms() - STALE_MS
    return {
        "clientId": client.id,
        "connected": is_online,
        "stale": is_old or not is_online,
        "seq": snapshot.get("seq"),
        "updatedAt": snapshot.get("at"),
        "state": snapshot.get("state"),
    }


def delete_snapshot(client_id: str) -> None:
    """Delete what is known of a browser."""
    _redis.execute(lambda redis: redis.delete(key_of("snapshot", client_id)))


def _unsealed(sealed: bytes | None, client_id: str) -> Mapping[str, Any]:
    if sealed is None:
        return {}
    try:
        plain = unseal(sealed, purpose=_PURPOSE, bound_to=client_id)
    except ValueError:  # sealed under a key that is not configured any more
        return {}
    snapshot: Snapshot = orjson.loads(plain)
    return snapshot
