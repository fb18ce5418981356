"""GET a page of a server on this machine, to see whether one responds and with what."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

from runners.network.loopback import LoopbackOnly
from runners.workspace.errors import PreviewFailed, WorkspaceTimeout

MAX_HEAD_BYTES = 256 * 1024  # and of the part of a body that arrives with its last wanted byte


class NothingListening(PreviewFailed):
    """Nothing listens at the address."""


@dataclass(frozen=True, slots=True)
class LocalResponse:
    """A server's response; the body is cut at the requested size."""

    status: int
    body: bytes


async def http_get(url: str, *, seconds: float, max_bytes: int = 0) -> LocalResponse:
    """GET a URL on localhost or 127.0.0.1; redirects are not followed.

    Args:
        max_bytes: of the body to read.

    Raises:
        NothingListening: Nothing listens at the address.
        PreviewFailed: The response is not HTTP, or is incomplete.
        WorkspaceTimeout: There was no response within `seconds`.
    """
    # Not at start-up: the client takes a while to import, and MCP hosts wait for it.
    from runners.network import http_client

    host, body = urlsplit(url).netloc, bytearray()
    usage = http_client.WireUsage(max_bytes + MAX_HEAD_BYTES)
    headers = {"Accept": "*/*", "Connection": "close"}
    try:
        async with (
            asyncio.timeout(seconds),
            http_client.create_pool(LoopbackOnly()) as pool,
            http_client.send_request(pool, "GET", url, headers=headers, usage=usage) as response,
        ):
            if max_bytes:
                async for piece in response.aiter_stream():
                    body += piece
                    if len(body) >= max_bytes:
                        break
            return LocalResponse(response.status, bytes(body[:max_bytes]))
    except TimeoutError:
        raise WorkspaceTimeout(
            f"{host} did not respond within {round(seconds * 1000)} ms.", details={"url": url}
        ) from None
    except (http_client.ResponseTooLarge, *http_client.CONNECTION_ERRORS):
        if not usage.sent:
            raise NothingListening(f"Nothing listens at {host}.", details={"url": url}) from None
        raise PreviewFailed(f"The response of {host} is not HTTP.", details={"url": url}) from None
