"""HTTP requests to addresses that a user chose, without server-side request forgery.

A host name is resolved once, all its addresses are checked, and the connection is made to a checked
address, so a DNS answer that changes later has no effect. The size of a response is limited before
decoding. Redirects are not followed, and proxies of the environment are not used.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpcore2

from runners.network.address import DEFAULT_PORTS
from runners.network.egress import EgressDenied, EgressPolicy, NameNotResolved

_MAX_CONNECTIONS = 256

# Exceptions of a connection without a response.
CONNECTION_ERRORS = (
    EgressDenied,
    NameNotResolved,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    OSError,
)


class ResponseTooLarge(Exception):
    """The response has more bytes than allowed."""


@dataclass(slots=True)
class WireUsage:
    """The bytes that one request sends and receives.

    Attributes:
        max_received: of the response, its head included, before decoding.
        sent: whether any byte may have reached the server.
        received: number of bytes.
    """

    max_received: int
    sent: bool = False
    received: int = 0


_current_usage: ContextVar[WireUsage] = ContextVar("wire_usage")


def create_pool(
    egress: EgressPolicy, *, max_idle: int = 0, idle_s: float = 0.0
) -> httpcore2.AsyncConnectionPool:
    """Return a pool of connections to addresses that the policy permits, for one event loop.

    Args:
        max_idle: connections to keep open for a later request; 0: each request has its own.
        idle_s: seconds after which an idle connection is closed.
    """
    return httpcore2.AsyncConnectionPool(
        ssl_context=_certificates(),
        max_connections=_MAX_CONNECTIONS,
        max_keepalive_connections=max_idle,
        keepalive_expiry=idle_s,
        http2=False,
        retries=0,
        network_backend=_CheckedNetwork(egress),
    )


@asynccontextmanager
async def send_request(
    pool: httpcore2.AsyncConnectionPool,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    usage: WireUsage,
    content: bytes | None = None,
) -> AsyncIterator[httpcore2.Response]:
    """Send a request once and yield the response, its body unread; leaving the block before the
    body's end closes the connection.

    Args:
        url: as `runners.network.address.check_address` returns it.

    Raises:
        ResponseTooLarge: While the response is read.
        One of CONNECTION_ERRORS: `connection_error_text` describes it.
    """
    _current_usage.set(usage)
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    address = httpcore2.URL(
        scheme=parts.scheme,
        host=parts.hostname or "",
        port=parts.port or DEFAULT_PORTS[parts.scheme],
        target=target,
    )
    sent = {"Host": parts.netloc, "Accept-Encoding": "identity", **headers}
    async with pool.stream(
        method, address, headers=list(sent.items()), content=content
    ) as response:
        yield response


def connection_error_text(error: BaseException) -> str:
    """Return a message for one of CONNECTION_ERRORS, without text from the other side."""
    if isinstance(error, EgressDenied):
        return (
            "The host name or one of its addresses is not allowed. The operator can allow it in"
            " CONTINUITY_EGRESS_ALLOW."
        )
    if isinstance(error, NameNotResolved):
        return "The host name is unknown."
    if isinstance(error, httpcore2.ConnectError):
        return _connect_error_text(*error.args[:1])  # httpcore keeps the original error
    if isinstance(error, httpcore2.ProtocolError):
        return "The server does not speak HTTP, or closed the connection early."
    return "The connection was interrupted."


def _connect_error_text(cause: object = None) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return "The server's certificate is not trusted."
    if isinstance(cause, ssl.SSLError):
        return "No TLS connection could be established."
    return "No server accepts connections at the address."


@cache
def _certificates() -> ssl.SSLContext:
    """Return the TLS context, created once: reading the CA certificates takes 30 ms."""
    return ssl.create_default_context()


class _CountedStream(httpcore2.AsyncNetworkStream):
    """A connection that counts its bytes for the request of the current asyncio task."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._inner.read(max_bytes, timeout)
        usage = _current_usage.get()
        usage.received += len(data)
        if usage.received > usage.max_received:
            raise ResponseTooLarge
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        _current_usage.get().sent = True
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return _CountedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects only to addresses that the egress policy permits."""

    def __init__(self, egress: EgressPolicy) -> None:
        self._egress, self._inner = egress, httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        addresses = await self._egress.addresses_of(host.strip("[]"))
        self._egress.check(host, port, addresses)
        for number, address in enumerate(addresses, 1):
            try:
                stream = await self._inner.connect_tcp(str(address), port, timeout)
            except httpcore2.ConnectError:
                if number == len(addresses):
                    raise
            else:
                return _CountedStream(stream)
        raise NameNotResolved(host)
