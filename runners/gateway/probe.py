"""Whether a runner answers at all, and what it says that it offers: two short questions."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import httpcore2

from runners.errors import ToolFailed
from runners.gateway.connections import TROUBLES, Exchange, pool, under_way, why_broken
from runners.gateway.endpoint import checked_endpoint, host_of, place_of
from runners.gateway.request import CATALOGUE_MAX_BYTES, PROBE_S

HEALTH = "/health"
TOOLS = "/tools"
_OFFERS_NONE = frozenset({404, 405, 501})  # of a runner that does not know the question


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


@dataclass(frozen=True, slots=True)
class Published:
    """What a runner says that it offers.

    Attributes:
        body: as it came; empty where it publishes nothing.
        error: why it cannot be known.
    """

    body: bytes = b""
    error: str | None = None


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
            status, _ = await _get(endpoint, auth_token, HEALTH, max_bytes=0)
    except TimeoutError:
        error = f"No answer within {PROBE_S:.0f} s."
    except ToolFailed as refused:
        error = refused.message
    except TROUBLES as trouble:
        error = why_broken(trouble)
    return Probed(status, int((time.monotonic() - began) * 1000), error)


async def ask_what_it_offers(endpoint: str, auth_token: str | None) -> Published:
    """Ask a runner for its tools (GET /tools beside its endpoint); whatever goes wrong is what was
    found. What it says is not looked at here.
    """
    try:
        async with asyncio.timeout(PROBE_S):
            status, body = await _get(
                endpoint, auth_token, TOOLS, max_bytes=CATALOGUE_MAX_BYTES + 1
            )
    except TimeoutError:
        return Published(error=f"It did not tell its tools within {PROBE_S:.0f} s.")
    except ToolFailed as refused:
        return Published(error=refused.message)
    except TROUBLES as trouble:
        return Published(error=why_broken(trouble))
    return _published(status, body)


def _published(status: int, body: bytes) -> Published:
    if status in _OFFERS_NONE:
        return Published()
    if not 200 <= status < 300:
        return Published(error=f"It answered {status} when it was asked for its tools.")
    if len(body) > CATALOGUE_MAX_BYTES:
        return Published(error=f"Its list of tools has more than {CATALOGUE_MAX_BYTES} bytes.")
    return Published(body)


async def _get(
    endpoint: str, auth_token: str | None, path: str, *, max_bytes: int
) -> tuple[int, bytes]:
    """Return the status of an answer, and of its body the first bytes: `max_bytes` or a few
    more.
    """
    place = checked_endpoint(endpoint)
    under_way.set(Exchange())
    headers = [
        ("host", host_of(place)),
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
        ("connection", "close"),
    ]
    if auth_token:
        headers.append(("authorization", f"Bearer {auth_token}"))
    url = httpcore2.URL(**place_of(place, path))
    async with pool().stream("GET", url, headers=headers) as response:
        body = bytearray()
        if max_bytes:
            async for data in response.aiter_stream():
                body += data
                if len(body) >= max_bytes:
                    break
        return response.status, bytes(body)
