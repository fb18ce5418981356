"""The pools of HTTP connections to runners: one per event loop, so one per worker process, and one
more for each address that is opened for a single runner.
"""

from __future__ import annotations

import asyncio

import httpcore2

from runners.network.allowlist import parse_allowed_networks
from runners.network.egress import EgressPolicy, PermitCheck
from runners.network.http_client import create_pool

MAX_WIRE_BYTES = 8 * 1024 * 1024
_MAX_IDLE = 64
# Less than the five seconds after which common servers close idle connections: a call that is sent
# while the server closes the connection is lost, and is not sent again.
_IDLE_S = 4.0

_pools: dict[tuple[asyncio.AbstractEventLoop, str], httpcore2.AsyncConnectionPool] = {}


def pool(opened: str = "") -> httpcore2.AsyncConnectionPool:
    """Return the running loop's connection pool; create it at the first call.

    Args:
        opened: an address that is opened for one runner: the pool then connects to it alone.
    """
    key = asyncio.get_running_loop(), opened
    found = _pools.get(key)
    if found is None:
        for gone in [one for one in _pools if one[0].is_closed()]:
            del _pools[gone]
        policy = EgressPolicy(permits=_only(opened)) if opened else EgressPolicy()
        found = _pools[key] = create_pool(policy, max_idle=_MAX_IDLE, idle_s=_IDLE_S)
    return found


def _only(opened: str) -> PermitCheck:
    (network,) = parse_allowed_networks(opened)
    return network.covers


async def close_pool() -> None:
    """Close the running loop's connection pools; the next call creates a new one."""
    loop = asyncio.get_running_loop()
    for key in [one for one in _pools if one[0] is loop]:
        await _pools.pop(key).aclose()
