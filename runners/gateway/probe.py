"""Probe a runner: its health, and the list of tools that it publishes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from urllib.parse import urljoin

from runners.errors import ToolFailed
from runners.gateway.connections import MAX_WIRE_BYTES, pool
from runners.gateway.endpoint import checked_endpoint, used_opening
from runners.gateway.request import CATALOGUE_MAX_BYTES, PROBE_S
from runners.network.http_client import (
    CONNECTION_ERRORS,
    WireUsage,
    connection_error_text,
    send_request,
)

HEALTH_PATH = "/health"
TOOLS_PATH = "/tools"
_NOT_PUBLISHED = frozenset({404, 405, 501})  # status of runners without a list of tools


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a health probe.

    Attributes:
        status: HTTP status; any status means that the runner is up. None: no response.
        error: why there was no response.
        took_ms: until the response headers, or until the probe gave up.
    """

    status: int | None
    took_ms: int
    error: str | None = None

    @property
    def is_up(self) -> bool:
        """Whether the runner sent an HTTP response."""
        return self.status is not None


@dataclass(frozen=True, slots=True)
class PublishedTools:
    """The list of tools that a runner publishes.

    Attributes:
        body: the response body, unchecked; empty if the runner publishes none.
        error: why the list could not be read.
    """

    body: bytes = b""
    error: str | None = None


async def probe_runner(
    endpoint: str | None, auth_token: str | None, opened: str = ""
) -> ProbeResult:
    """Send GET /health to a runner; a failure is a result with `error`.

    Args:
        opened: the address that is open for this runner alone.
    """
    if not endpoint:
        return ProbeResult(None, 0, "The target names no endpoint to call.")
    started = time.monotonic()
    status, error = None, None
    try:
        async with asyncio.timeout(PROBE_S):
            status, _ = await _get(endpoint, auth_token, HEALTH_PATH, opened, max_bytes=0)
    except TimeoutError:
        error = f"No answer within {PROBE_S:.0f} s."
    except ToolFailed as refused:
        error = refused.message
    except CONNECTION_ERRORS as error_found:
        error = connection_error_text(error_found)
    return ProbeResult(status, int((time.monotonic() - started) * 1000), error)


async def fetch_published_tools(
    endpoint: str, auth_token: str | None, opened: str = ""
) -> PublishedTools:
    """Send GET /tools to a runner and return the body, unchecked; a failure sets `error`."""
    try:
        async with asyncio.timeout(PROBE_S):
            status, body = await _get(
                endpoint, auth_token, TOOLS_PATH, opened, max_bytes=CATALOGUE_MAX_BYTES + 1
            )
    except TimeoutError:
        return PublishedTools(error=f"It did not send its list of tools within {PROBE_S:.0f} s.")
    except ToolFailed as refused:
        return PublishedTools(error=refused.message)
    except CONNECTION_ERRORS as error_found:
        return PublishedTools(error=connection_error_text(error_found))
    return _published(status, body)


def _published(status: int, body: bytes) -> PublishedTools:
    if status in _NOT_PUBLISHED:
        return PublishedTools()
    if not 200 <= status < 300:
        return PublishedTools(error=f"It answered {status} to the request for its list of tools.")
    if len(body) > CATALOGUE_MAX_BYTES:
        return PublishedTools(error=f"Its list of tools has more than {CATALOGUE_MAX_BYTES} bytes.")
    return PublishedTools(body)


async def _get(
    endpoint: str, auth_token: str | None, path: str, opened: str, *, max_bytes: int
) -> tuple[int, bytes]:
    """Return the status of a response and at least the first `max_bytes` bytes of its body."""
    url = urljoin(checked_endpoint(endpoint, opened), path)
    connections = pool(used_opening(url, opened))
    headers = {"Accept": "application/json", "Connection": "close"}
    if auth_token:
        headers["Authorization"] = f"Bearer {auth_token}"
    usage = WireUsage(MAX_WIRE_BYTES)
    async with send_request(connections, "GET", url, headers=headers, usage=usage) as response:
        body = bytearray()
        if max_bytes:
            async for data in response.aiter_stream():
                body += data
                if len(body) >= max_bytes:
                    break
        return response.status, bytes(body)
