"""The pool of HTTP connections to runners: one per event loop, so one per worker process.

Each connection is made to an address that the egress rule has checked, so a DNS answer that changes
later has no effect. The bytes of a connection are counted for the call that uses it, before
decoding.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpcore2

from runners.network.egress import EgressDenied, EgressPolicy, NameNotResolved

MAX_WIRE_BYTES = 8 * 1024 * 1024
_MAX_CONNECTIONS = 256
_MAX_IDLE = 64
# Less than the five seconds after which common servers close idle connections: a call that is sent
# while the server closes the connection is lost, and is not sent again.
_IDLE_S = 4.0


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
    """The bytes that one call sent and received.

    Attributes:
        sent: whether any byte may have reached the runner.
        received: number of bytes, before decoding.
    """

    sent: bool = False
    received: int = 0


current_exchange: ContextVar[WireUsage] = ContextVar("under_way")


class _Stream(httpcore2.AsyncNetworkStream):
    """A connection that counts its bytes for the call of the current asyncio task."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._inner.read(max_bytes, timeout)
        usage = current_exchange.get()
        usage.received += len(data)
        if usage.received > MAX_WIRE_BYTES:
            raise ResponseTooLarge
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        current_exchange.get().sent = True
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Network(httpcore2.AsyncNetworkBackend):
    """Connects only to addresses that the egress rule allows."""

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
                return _Stream(stream)
        raise NameNotResolved(host)


_pools: dict[asyncio.AbstractEventLoop, httpcore2.AsyncConnectionPool] = {}


def pool() -> httpcore2.AsyncConnectionPool:
    """Return the running loop's connection pool; create it at the first call."""
    loop = asyncio.get_running_loop()
    found = _pools.get(loop)
    if found is None:
        for gone in [one for one in _pools if one.is_closed()]:
            del _pools[gone]
        found = _pools[loop] = httpcore2.AsyncConnectionPool(
            ssl_context=_certificates(),
            max_connections=_MAX_CONNECTIONS,
            max_keepalive_connections=_MAX_IDLE,
            keepalive_expiry=_IDLE_S,
            http2=False,
            retries=0,
            network_backend=_Network(EgressPolicy()),
        )
    return found


async def close_pool() -> None:
    """Close the running loop's connection pool; the next call creates a new one."""
    found = _pools.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.aclose()


def connection_error_text(error: BaseException) -> str:
    """Return a message for one of CONNECTION_ERRORS, without text from the other side."""
    if isinstance(error, EgressDenied):
        return (
            "The runner's address is not public. The operator can allow it in"
            " CONTINUITY_EGRESS_ALLOW."
        )
    if isinstance(error, NameNotResolved):
        return "The runner's host name cannot be resolved."
    if isinstance(error, httpcore2.ConnectError):
        return _connect_error_text(
            *error.args[:1]
        )  # httpcore keeps the original error as an argument
    if isinstance(error, httpcore2.ProtocolError):
        return "The runner does not speak HTTP, or closed the connection early."
    return "The connection to the runner was interrupted."


def _connect_error_text(cause: object = None) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return "The runner's certificate is not trusted."
    if isinstance(cause, ssl.SSLError):
        return "No TLS connection to the runner could be established."
    return "No server accepts connections at the runner's address."


@cache
def _certificates() -> ssl.SSLContext:
    """Return the TLS context, created once: reading the CA certificates takes 30 ms."""
    return ssl.create_default_context()
