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

    def count_received(self, words: bytes) -> int:
        """Return how often callers sent these bytes."""
        return sum(bytes(one).count(words) for one in self.received)

    def forward(self, caller: socket.socket) -> None:
        """Forward a connection; close it if no runner accepts it."""
        runner = self._reached()
        if runner is None:
            caller.close()
            return
        heard = bytearray()
        self.received.append(heard)
        self._open += [caller, runner]
        for args in ((caller, runner, heard), (runner, caller, None)):
            threading.Thread(target=_pass_on, args=args, daemon=True).start()

    def close(self) -> None:
        """Close every connection."""
        for one in self._open:
            _end(one)

    def _reached(self) -> socket.socket | None:
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


def _pass_on(source: socket.socket, sink: socket.socket, heard: bytearray | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if heard is not None:
                heard += data
            sink.sendall(data)
    _end(source)
    _end(sink)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
