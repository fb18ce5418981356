"""A TCP relay in front of several runners that acts as a load balancer and records the traffic."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Relay:
    """Forward each connection to the next runner (round robin); skip runners that refuse it.

    Attributes:
        ports: the ports of the runners, on this machine.
        received: the bytes that the caller sent, for each connection.
        chosen: the runner's port, for each connection.
    """

    ports: Sequence[int]
    port: int = 0
    received: list[bytearray] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    _open: list[socket.socket] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        """Return the endpoint for targets."""
        return f"http://127.0.0.1:{self.port}/execute"

    def count_received(self, data: bytes) -> int:
        """Return how often callers sent these bytes."""
        return sum(bytes(stream).count(data) for stream in self.received)

    def forward(self, caller: socket.socket) -> None:
        """Forward a connection; close it if no runner accepts it."""
        runner = self._connect_to_next()
        if runner is None:
            caller.close()
            return
        received = bytearray()
        self.received.append(received)
        self._open += [caller, runner]
        for args in ((caller, runner, received), (runner, caller, None)):
            threading.Thread(target=_forward, args=args, daemon=True).start()

    def close(self) -> None:
        """Close every connection."""
        for sock in self._open:
            _end(sock)

    def _connect_to_next(self) -> socket.socket | None:
        first = len(self.chosen)
        for number in range(len(self.ports)):
            port = self.ports[(first + number) % len(self.ports)]
            with contextlib.suppress(OSError):
                runner = socket.create_connection(("127.0.0.1", port))
                self.chosen.append(port)
                return runner
        return None


@contextlib.contextmanager
def relay_to(*ports: int) -> Iterator[Relay]:
    """Yield a relay that listens for the length of the block."""
    relay = Relay(ports)
    with socket.create_server(("127.0.0.1", 0)) as server:
        relay.port = server.getsockname()[1]

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    relay.forward(server.accept()[0])

        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield relay
        finally:
            server.shutdown(socket.SHUT_RDWR)
            acceptor.join(10)
            relay.close()


def _forward(source: socket.socket, destination: socket.socket, received: bytearray | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if received is not None:
                received += data
            destination.sendall(data)
    _end(source)
    _end(destination)


def _end(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
