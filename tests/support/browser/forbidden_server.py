"""A server that remote callers must not reach, which counts visits, and a site that they may reach.

Both listen on 127.0.0.1. The test's policy opens one exact address and port; all else follows the
shipped policy.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from runners.network.allowlist import Address
from runners.network.egress import EgressPolicy, is_allowed_for_remote

PUBLIC = "public.example"
LOOPBACK = ipaddress.ip_address("127.0.0.1")
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\n"
    b"Content-Length: 28\r\nConnection: close\r\n\r\n<title>Secret</title>secret!"
)


class ForbiddenServer:
    """Count TCP connections and UDP packets on one port; `tcp` and `udp` are the counts."""

    def __init__(self) -> None:
        self.tcp = self.udp = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._packets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._packets.bind(("127.0.0.1", self.port))
        for work in (self._answer, self._receive):
            threading.Thread(target=work, daemon=True).start()

    @property
    def visits(self) -> int:
        """Return the sum of connections and packets."""
        return self.tcp + self.udp

    def url(self, host: str = "127.0.0.1", path: str = "/") -> str:
        """Return the server's address with this spelling of the host."""
        return f"http://{host}:{self.port}{path}"

    def close(self) -> None:
        """Stop counting."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._packets.sendto(b"", ("127.0.0.1", self.port))

    def _answer(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.tcp += 1
            with client:
                client.settimeout(2)
                try:
                    client.recv(65536)
                    client.sendall(ANSWER)
                except OSError:
                    continue

    def _receive(self) -> None:
        with self._packets:
            while self._packets.recv(65536):
                self.udp += 1


@contextmanager
def serve_forbidden() -> Iterator[ForbiddenServer]:
    """Yield a forbidden server that listens for the length of the block."""
    server = ForbiddenServer()
    try:
        yield server
    finally:
        server.close()


def egress_policy_allowing(port: int, names: Mapping[str, str] | None = None) -> EgressPolicy:
    """Return the shipped policy, except that one port of loopback counts as public.

    `names` maps further host names to addresses; PUBLIC resolves to loopback. The policy sends no
    DNS queries.
    """
    addresses = {PUBLIC: "127.0.0.1", **(names or {})}

    async def resolve(host: str) -> Sequence[Address]:
        await asyncio.sleep(0)
        return tuple(ipaddress.ip_address(text) for text in addresses.get(host, "").split())

    def permits(address: Address, to_port: int) -> bool:
        return (address, to_port) == (LOOPBACK, port) or is_allowed_for_remote(address, to_port)

    return EgressPolicy(resolve=resolve, permits=permits)
