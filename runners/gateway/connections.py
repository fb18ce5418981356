"""The connections to runners: one pool per event loop, so one per worker process.

Connections are kept and used again; each is made to an address that the egress rule was asked
about, so that no name leads elsewhere later. What goes through a connection is counted for the
exchange that uses it, before anything is decoded.
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
# Below the five seconds after which common servers close what is idle: a call that goes out as its
# connection is closed is lost, and is not sent again.
_IDLE_S = 4.0


# What a connection may come to besides an answer.
TROUBLES = (EgressDenied, NameNotResolved, httpcore2.NetworkError, httpcore2.ProtocolError, OSError)


class TooMuch(Exception):
    """More bytes came than one answer may have."""


@dataclass(slots=True)
class Exchange:
    """What went through a connection for one call.

    Attributes:
        sent: whether a byte of it may have reached the runner.
        received: bytes, as they came.
    """

    sent: bool = False
    received: int = 0


under_way: ContextVar[Exchange] = ContextVar("under_way")


class _Stream(httpcore2.AsyncNetworkStream):
    """A connection that counts for the exchange of the task that uses it."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._inner.read(max_bytes, timeout)
        exchange = under_way.get()
        exchange.received += len(data)
        if exchange.received > MAX_WIRE_BYTES:
            raise TooMuch
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        under_way.get().sent = True
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
    """Connects to addresses that the egress rule permits, and to nothing else."""

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
    """Return the running loop's connections to runners."""
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
    """Close the running loop's connections; the next call opens new ones."""
    found = _pools.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.aclose()


def why_broken(error: BaseException) -> str:
    """Return in words which of the TROUBLES it was; nothing of what the other side said."""
    if isinstance(error, EgressDenied):
        return (
            "The runner's address is not open to servers; its operator opens it with"
            " CONTINUITY_EGRESS_ALLOW."
        )
    if isinstance(error, NameNotResolved):
        return "The runner's host name is unknown."
    if isinstance(error, httpcore2.ConnectError):
        return _why_not_reached(*error.args[:1])  # what it was made of: its cause is cut off
    if isinstance(error, httpcore2.ProtocolError):
        return "What answers there does not speak HTTP, or stopped in the middle."
    return "The connection to the runner broke."


def _why_not_reached(cause: object = None) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return "The runner's certificate is not trusted."
    if isinstance(cause, ssl.SSLError):
        return "There is no secure connection to the runner."
    return "No runner answers there."


@cache
def _certificates() -> ssl.SSLContext:
    """Return what checks certificates, made once: reading the authorities takes 30 ms."""
    return ssl.create_default_context()
