"""A stub runner: a local server whose response to each request the test writes byte by byte."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

STALL_S = 60.0  # longer than any deadline in tests; no test waits this long


@dataclass(frozen=True, slots=True)
class RunnerRequest:
    """One received request."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body, parsed as JSON."""
        return json.loads(self.body)


@dataclass(slots=True)
class RunnerConnection:
    """A connection to a caller, on which a test writes the response byte by byte.

    Attributes:
        test_ended: set when the test has ended, so that no thread waits any longer.
    """

    sock: socket.socket
    test_ended: threading.Event
    request: RunnerRequest | None = None

    def send(self, data: bytes) -> None:
        """Send bytes unchanged."""
        self.sock.sendall(data)

    def head(self, status: int = 200, *, body: bytes = b"", **headers: str) -> None:
        """Send status line and headers, and `body` in the same packet.

        The caller passes the headers for length or encoding.
        """
        lines = [f"HTTP/1.1 {status} Said", "content-type: application/json"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode() + body)

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        """Send a complete response."""
        self.head(status, body=body, content_length=str(len(body)), **headers)

    def chunk(self, data: bytes) -> None:
        """Send a chunk of a response with transfer-encoding chunked."""
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def hang(self) -> None:
        """Send nothing until the test has ended or the caller disconnects."""
        self.sock.settimeout(0.05)
        while not self.test_ended.is_set():
            with contextlib.suppress(TimeoutError):
                if not self.sock.recv(1):
                    return

    def reset(self) -> None:
        """Reset the connection (RST)."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        os.close(self.sock.detach())

    def end(self) -> None:
        """Close the connection (FIN)."""
        self.sock.shutdown(socket.SHUT_RDWR)


Respond = Callable[[RunnerConnection], None]


@dataclass(slots=True)
class StubRunner:
    """The received requests, and the function that answers them."""

    respond: Respond
    tls: ssl.SSLContext | None = None
    url: str = ""
    requests: list[RunnerRequest] = field(default_factory=list)
    connections: int = 0
    open: list[socket.socket] = field(default_factory=list)
    test_ended: threading.Event = field(default_factory=threading.Event)

    def serve(self, sock: socket.socket) -> None:
        """Answer the requests of one connection until it closes."""
        with (
            contextlib.suppress(OSError),
            self._opened(sock) as opened,
            opened.makefile("rb") as reader,
        ):
            connection = RunnerConnection(opened, self.test_ended)
            self.open.append(opened)
            while (request := _read(reader)) is not None:
                self.requests.append(request)
                connection.request = request
                self.respond(connection)

    def _opened(self, sock: socket.socket) -> socket.socket:
        if self.tls is None:
            return sock
        try:
            return self.tls.wrap_socket(sock, server_side=True)
        except OSError:
            sock.close()
            raise


@contextlib.contextmanager
def stub_runner(do: Respond, tls: ssl.SSLContext | None = None) -> Iterator[StubRunner]:
    """Yield a stub runner for the length of the block; `respond` answers each request."""
    stub = StubRunner(do, tls)
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    sock, _ = server.accept()
                    stub.connections += 1
                    thread = threading.Thread(target=stub.serve, args=(sock,), daemon=True)
                    threads.append(thread)
                    thread.start()

        scheme = "http" if tls is None else "https"
        stub.url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}/execute"
        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield stub
        finally:
            stub.test_ended.set()
            server.shutdown(socket.SHUT_RDWR)
            for opened in stub.open:  # else open connections of callers delay the shutdown
                with contextlib.suppress(OSError):
                    opened.shutdown(socket.SHUT_RDWR)
    acceptor.join(10)
    for thread in threads:
        thread.join(10)


def responding_with(body: Any, status: int = 200, **headers: str) -> Respond:
    """Return a function that answers with this value as JSON, or with these bytes."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda line: line.answer(raw, status, **headers)


def _read(reader: Any) -> RunnerRequest | None:
    first = reader.readline()
    if not first:
        return None
    headers: dict[str, str] = {}
    while (line := reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    body = reader.read(int(headers.get("content-length", "0")))
    return RunnerRequest(first.decode().strip(), headers, body)
