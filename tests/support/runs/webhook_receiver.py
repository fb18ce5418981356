"""A receiver of webhooks: a local HTTP server that answers with the statuses of the test."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Received:
    """One received POST request."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """The received requests, and the statuses to answer in order; the last status is repeated."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses or (200,))
        self.requests: list[Received] = []
        self.headers: dict[str, str] = {}
        self.delay_s = 0.0
        self.url = ""
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()

    def record(self, received: Received) -> int:
        """Record a POST and return the status to answer."""
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            self.requests.append(received)
            status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        time.sleep(self.delay_s)
        with self._lock:
            self._now -= 1
        return status


@contextlib.contextmanager
def run_receiver(*statuses: int) -> Iterator[Receiver]:
    """Yield a receiver that listens for the length of the block."""
    receiver = Receiver(*statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            received = Received(self.path, dict(self.headers.items()), self.rfile.read(size))
            self.send_response(receiver.record(received))
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "2")
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(b"ok")

        def log_message(self, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
