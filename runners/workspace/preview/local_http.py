"""Ask a server of this machine for something, without a browser: is it there, what does it say."""

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
    """What a server said; of the body as much as was asked for."""

    status: int
    body: bytes


async def http_get(url: str, *, seconds: float, max_bytes: int = 0) -> LocalResponse:
    """Return what a server on localhost or 127.0.0.1 answers to a GET; no redirect is followed.

    Raises:
        NothingListening: Nothing listens there.
        PreviewFailed: What it answers is not HTTP, or breaks off.
        WorkspaceTimeout: It did not answer in time.
    """
    try:
        async with asyncio.timeout(seconds):
            near = await _connect(url)
            try:
                return await _exchange(near, url, max_bytes)
            finally:
                near[1].transport.abort()
    except TimeoutError:
        raise WorkspaceTimeout(
            f"{_place(url)} did not answer within {round(seconds * 1000)} ms.",
            details={"url": url},
        ) from None
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
        raise PreviewFailed(
            f"What {_place(url)} answers is not HTTP.", details={"url": url}
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
    raise NothingListening(f"Nothing answers at {_place(url)}.", details={"url": url})


async def _exchange(near: Stream, url: str, max_bytes: int) -> LocalResponse:
    reader, writer = near
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # As HTTP/1.0, so that the body comes in one piece and ends with the connection.
    writer.write(f"GET {path} HTTP/1.0\r\nHost: {parts.netloc}\r\nAccept: */*\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    status = _STATUS.match(head)
    if status is None:
        raise ValueError(url)
    length = _LENGTH.search(head)
    wanted = min(max_bytes, int(length[1])) if length else max_bytes
    return LocalResponse(int(status[1]), await _at_most(reader, wanted))


async def _at_most(reader: asyncio.StreamReader, wanted: int) -> bytes:
    body = b""
    while len(body) < wanted and (piece := await reader.read(wanted - len(body))):
        body += piece
    return body


def _place(url: str) -> str:
    return urlsplit(url).netloc
