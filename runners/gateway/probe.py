"""Whether a runner answers at all: a short question about its health."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import httpcore2

from runners.errors import ToolFailed
from runners.gateway.connections import TROUBLES, Exchange, pool, under_way, why_broken
from runners.gateway.endpoint import checked_endpoint, host_of, place_of
from runners.gateway.wanted import PROBE_S

HEALTH = "/health"


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe found.

    Attributes:
        status: of the answer; any answer at all says that the runner is up.
        error: why there was none.
        took_ms: until the answer's head, or until it was given up.
    """

    status: int | None
    took_ms: int
    error: str | None = None

    @property
    def is_up(self) -> bool:
        """Whether something answered in HTTP."""
        return self.status is not None


async def probe_runner(endpoint: str | None, auth_token: str | None) -> Probed:
    """Ask a runner for its health (GET /health beside its endpoint); whatever goes wrong is what
    was found.
    """
    if not endpoint:
        return Probed(None, 0, "The target names no endpoint to call.")
    began = time.monotonic()
    status, error = None, None
    try:
        async with asyncio.timeout(PROBE_S):
            status = await _status(endpoint, auth_token)
    except TimeoutError:
        error = f"No answer within {PROBE_S:.0f} s."
    except ToolFailed as refused:
        error = refused.message
    except TROUBLES as trouble:
        error = why_broken(trouble)
    return Probed(status, int((time.monotonic() - began) * 1000), error)


async def _status(endpoint: str, auth_token: str | None) -> int:
    place = checked_endpoint(endpoint)
    under_way.set(Exchange())
    headers = [("host", host_of(place)), ("accept-encoding", "identity"), ("connection", "close")]
    if auth_token:
        headers.append(("authorization", f"Bearer {auth_token}"))
    url = httpcore2.URL(**place_of(place, HEALTH))
    async with pool().stream("GET", url, headers=headers) as response:
        return response.status
