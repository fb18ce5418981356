"""A server on Redis' port that answers every command in one broken way."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.services import free_port

ANSWERS = {
    "loading": b"-LOADING Redis is loading the dataset in memory\r\n",
    "misconfigured": b"-MISCONF Redis is configured to save RDB snapshots, but cannot\r\n",
    "read-only": b"-READONLY You can't write against a read only replica.\r\n",
    "full": b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "password": b"-NOAUTH Authentication required.\r\n",
    "no number": b":many\r\n",
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "silent": b"",
}
REFUSED = "refused"
KINDS = (REFUSED, *ANSWERS)


class _BrokenRedis(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    answer = b""


class _Handler(socketserver.BaseRequestHandler):
    server: _BrokenRedis

    def handle(self) -> None:
        """Answer each command of a connection, pipelined ones too."""
        while received := self.request.recv(65536):
            commands = sum(line.startswith(b"*") for line in received.split(b"\r\n"))
            self.request.sendall(self.server.answer * max(1, commands))


@contextmanager
def broken_redis(kind: str) -> Iterator[str]:
    """Yield the URL of such a server; of a port where nothing listens if `kind` is REFUSED."""
    if kind == REFUSED:
        yield f"redis://127.0.0.1:{free_port()}/0"
        return
    with _BrokenRedis(("127.0.0.1", 0), _Handler) as server:
        server.answer = ANSWERS[kind]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"redis://127.0.0.1:{server.server_address[1]}/0"
        finally:
            server.shutdown()
