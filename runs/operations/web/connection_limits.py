"""Limits of the web server's connections: how many, how long a request may take to arrive, and how
long a client may leave a response unread.
"""

from __future__ import annotations

import asyncio
import ipaddress
import resource
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from decisions.audit.anonymous_events import peer_network
from decisions.foundation.security.loopback import is_loopback

OPEN_FILES = 65_536
_OTHER_FILES = 256  # database connections, artifacts, logs, libraries
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one web process.

    Attributes:
        head_s: time from a request's first byte (or the connection) until its head is complete.
        body_s: time for a request's body, which each `body_bytes_per_s` bytes extend by a second.
        unread_s: time that a client may leave sent data unread.
        idle_s: time that a connection may be open between two requests.
        connections: open connections.
        per_peer: open connections of one client address (IPv6: one /64 network), except of this
            machine and of proxies.
        proxies: addresses of the trusted proxies; their connections are those of many clients.
    """

    head_s: float = 10.0
    body_s: float = 20.0
    body_bytes_per_s: int = 4096
    unread_s: float = 60.0
    idle_s: int = 5
    connections: int = 10_000
    per_peer: int = 500
    proxies: tuple[Network, ...] = ()

    def is_exempt(self, address: str) -> bool:
        """Return whether the number of connections from this address is not limited."""
        if is_loopback(address):
            return True
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:  # a Unix socket
            return True
        return any(parsed in network for network in self.proxies)


@dataclass
class OpenConnections:
    """The open connections of one server, WebSockets included."""

    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    total: int = 0
    peers: Counter[str] = field(default_factory=Counter)

    def add(self, address: str) -> str | None:
        """Count a new connection; return None, or why it must be refused: `peer` or `total`."""
        if self.total >= self.limits.connections:
            return "total"
        peer = peer_network(address)
        if self.peers[peer] >= self.limits.per_peer and not self.limits.is_exempt(address):
            return "peer"
        self.total += 1
        self.peers[peer] += 1
        return None

    def remove(self, address: str) -> None:
        """Count a connection that `add` accepted as closed."""
        peer = peer_network(address)
        self.total -= 1
        self.peers[peer] -= 1
        if not self.peers[peer]:
            del self.peers[peer]


class WebConfig(uvicorn.Config):
    """uvicorn's configuration with the open connections of its server."""

    def __init__(self, app: Any, *, limits: ConnectionLimits | None = None, **options: Any) -> None:
        self.open_connections = OpenConnections(limits or ConnectionLimits())
        options.setdefault("timeout_keep_alive", self.open_connections.limits.idle_s)
        super().__init__(app, ws=CountedWebSocketProtocol, **options)


class CountedWebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket, which `LimitedProtocol` counted when its connection was opened."""

    config: WebConfig

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection as closed."""
        self.config.open_connections.remove(address_of(self.transport))
        super().connection_lost(exc)


def address_of(transport: asyncio.BaseTransport) -> str:
    """Return the IP address of a connection's client, or an empty string for a Unix socket."""
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple | list) and peer else ""


def allow_many_connections() -> int:
    """Raise this process's limit of open files, often 1024, because each connection needs one;
    return how many connections it can have.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return min(ConnectionLimits().connections, max(wanted - _OTHER_FILES, wanted // 2))
