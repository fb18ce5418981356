"""A minimal HTTP client for servers on this machine, to see whether one responds and with what."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from runners.network.loopback import loopback_addresses
from runners.workspace.errors import PreviewFailed, WorkspaceTimeout

MAX_HEAD_BYTES = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})\b")
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,18}) *\r\n", re.IGNORECASE)
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


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
    try:
        async with asyncio.timeout(seconds):
            stream = await _connect(url)
            try:
                return await _exchange(stream, url, max_bytes)
            finally:
                stream[1].transport.abort()
    except TimeoutError:
        raise WorkspaceTimeout(
            f"{_host(url)} did not respond within {round(seconds * 1000)} ms.",
            details={"url": url},
        ) from None
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
        raise PreviewFailed(
            f"The response of {_host(url)} is not HTTP.", details={"url": url}
        ) from None


async def _connect(url: str) -> Stream:
    parts = urlsplit(url)
    is_tls = parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    for address in loopback_addresses(parts.hostname or ""):
        try:
            return await asyncio.open_connection(
                str(address),
                port,
                limit=MAX_HEAD_BYTES,
                ssl=is_tls or None,
                server_hostname=parts.hostname if is_tls else None,
            )
        except OSError:
            continue
    raise NothingListening(f"Nothing listens at {_host(url)}.", details={"url": url})


async def _exchange(stream: Stream, url: str, max_bytes: int) -> LocalResponse:
    reader, writer = stream
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # HTTP/1.0, so that the body is not chunked and ends with the connection.
    writer.write(f"GET {path} HTTP/1.0\r\nHost: {parts.netloc}\r\nAccept: */*\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    status = _STATUS.match(head)
    if status is None:
        raise ValueError(url)
    length = _LENGTH.search(head)
    max_bytes = min(max_bytes, int(length[1])) if length else max_bytes
    return LocalResponse(int(status[1]), await _read_up_to(reader, max_bytes))


async def _read_up_to(reader: asyncio.StreamReader, max_bytes: int) -> bytes:
    body = b""
    while len(body) < max_bytes and (chunk := await reader.read(max_bytes - len(body))):
        body += chunk
    return body


def _host(url: str) -> str:
    return urlsplit(url).netloc
