"""A small TCP relay in front of runners: one address with several of them behind it, as a load
balancer has it, and an ear for what went to them.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Relay:
    """Connections that go to the runners in turn, and on to the next one where nobody answers.

    Attributes:
        ports: of the runners behind it, on this machine.
        heard: what callers sent, a connection each.
        chosen: the port that each connection went to.
    """

    ports: Sequence[int]
    port: int = 0
    heard: list[bytearray] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    _open: list[socket.socket] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        """Return where targets call it."""
        return f"http://127.0.0.1:{self.port}/execute"

    def times_heard(self, words: bytes) -> int:
        """Return how often something was sent through it."""
        return sum(bytes(one).count(words) for one in self.heard)

    def take(self, caller: socket.socket) -> None:
        """Pass a connection on; end it where no runner answers."""
        runner = self._reached()
        if runner is None:
            caller.close()
            return
        heard = bytearray()
        self.heard.append(heard)
        self._open += [caller, runner]
        for args in ((caller, runner, heard), (runner, caller, None)):
            threading.Thread(target=_pass_on, args=args, daemon=True).start()

    def close(self) -> None:
        """End every connection."""
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
    """A relay for the length of the block."""
    relay = Relay(ports)
    with socket.create_server(("127.0.0.1", 0)) as server:
        relay.port = server.getsockname()[1]

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    relay.take(server.accept()[0])

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
