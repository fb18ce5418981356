"""The pool of HTTP connections to runners: one per event loop, so one per worker process."""

from __future__ import annotations

import asyncio

import httpcore2

from runners.network.egress import EgressPolicy
from runners.network.http_client import create_pool

MAX_WIRE_BYTES = 8 * 1024 * 1024
_MAX_IDLE = 64
# Less than the five seconds after which common servers close idle connections: a call that is sent
# while the server closes the connection is lost, and is not sent again.
_IDLE_S = 4.0

_pools: dict[asyncio.AbstractEventLoop, httpcore2.AsyncConnectionPool] = {}


def pool() -> httpcore2.AsyncConnectionPool:
    """Return the running loop's connection pool; create it at the first call."""
    loop = asyncio.get_running_loop()
    found = _pools.get(loop)
    if found is None:
        for gone in [one for one in _pools if one.is_closed()]:
            del _pools[gone]
        found = _pools[loop] = create_pool(EgressPolicy(), max_idle=_MAX_IDLE, idle_s=_IDLE_S)
    return found


async def close_pool() -> None:
    """Close the running loop's connection pool; the next call creates a new one."""
    found = _pools.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.aclose()
