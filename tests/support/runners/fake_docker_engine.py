"""A fake Docker engine: the engine's HTTP API on a Unix socket, with processes as containers.

It stores the create request of each container and refuses requests for unknown containers.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import socketserver
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

API = "1.47"
IMAGE = "debian:bookworm-slim"


@dataclass(slots=True)
class Container:
    """A container: its create request, and the process that replaces it."""

    id: str
    request: dict[str, Any]
    process: subprocess.Popen[bytes] | None = None
    started: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Start the container's command."""
        self.process = subprocess.Popen(
            self.request["Cmd"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={
                "PATH": os.defpath,
                **dict(variable.split("=", 1) for variable in self.request["Env"]),
            },
        )
        self.started.set()

    def kill(self) -> None:
        """Kill the process group of the container."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.started.set()


class Engine(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """The engine; `created` lists all containers, `containers` those that were not removed."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, socket: Path) -> None:
        super().__init__(str(socket), _Handler)
        self.url = f"unix://{socket}"
        self.containers: dict[str, Container] = {}
        self.created: list[Container] = []
        self.fails_at: str | None = None

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection and add an address: a Unix socket's peer has none."""
        return super().get_request()[0], ("engine", 0)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Engine

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""

    def do_GET(self) -> None:
        path = self._path()
        if path in {"/version", "/_ping"}:
            self._respond(200, {"ApiVersion": API, "MinAPIVersion": "1.24", "Version": "27.0"})
        elif path == f"/images/{IMAGE}/json":
            self._respond(200, {"Id": "sha256:1"})
        elif path == "/containers/json":
            listed = [
                {"Id": c.id, "Labels": c.request["Labels"]}
                for c in self.server.created
                if c.id in self.server.containers
            ]
            self._respond(200, listed)
        elif path.endswith("/json") and (found := self._container(path)):
            self._respond(200, {"Id": found.id, "Config": {"Tty": found.request["Tty"]}})
        else:
            what = "image" if path.startswith("/images/") else "container"
            self._respond(404, {"message": f"No such {what}: {path}"})

    def do_POST(self) -> None:
        path = self._path()
        size = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(size) or b"null")
        found = self._container(path)
        if self.server.fails_at is not None and path.endswith(self.server.fails_at):
            self._respond(500, {"message": "the engine\nis out of order"})
        elif path == "/containers/create":
            self._create(body)
        elif found is None:
            self._respond(404, {"message": "No such container"})
        elif path.endswith("/start"):
            found.start()
            self._respond(204)
        elif path.endswith("/attach"):
            self._attach(found)
        elif path.endswith("/wait"):
            found.started.wait()
            code = found.process.wait() if found.process else 0
            self._respond(200, {"StatusCode": code if code >= 0 else 128 - code})

    def do_DELETE(self) -> None:
        found = self._container(self._path())
        if found is None:
            self._respond(404, {"message": "No such container"})
            return
        assert parse_qs(urlsplit(self.path).query) == {
            "v": ["True"],
            "force": ["True"],
            "link": ["False"],
        }
        del self.server.containers[found.id]
        found.kill()
        self._respond(204)

    def _create(self, body: dict[str, Any]) -> None:
        container = Container(f"c{len(self.server.created)}", body)
        self.server.created.append(container)
        self.server.containers[container.id] = container
        self._respond(201, {"Id": container.id, "Warnings": []})

    def _attach(self, container: Container) -> None:
        """Send stdout and stderr of the container as frames until the container exits."""
        self.close_connection = True
        self.wfile.write(
            b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream\r\n"
            b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        )
        self.wfile.flush()
        container.started.wait()
        if container.process is None:
            return
        lock = threading.Lock()
        streams = enumerate((container.process.stdout, container.process.stderr), 1)
        copying = [threading.Thread(target=self._copy, args=(*stream, lock)) for stream in streams]
        for thread in copying:
            thread.start()
        for thread in copying:
            thread.join()

    def _copy(self, number: int, stream: Any, lock: threading.Lock) -> None:
        with contextlib.suppress(OSError), stream:
            while data := stream.read1(65536):
                with lock:
                    self.wfile.write(struct.pack(">BxxxL", number, len(data)) + data)
                    self.wfile.flush()

    def _path(self) -> str:
        return urlsplit(self.path).path.removeprefix(f"/v{API}")

    def _container(self, path: str) -> Container | None:
        return self.server.containers.get(path.split("/")[2]) if path.count("/") >= 2 else None

    def _respond(self, status: int, value: Any = None) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def docker_engine(folder: Path) -> Iterator[Engine]:
    """Run a fake engine for the length of the block; the path of `folder` must be short."""
    with Engine(folder / "engine.sock") as engine:
        serving = threading.Thread(target=engine.serve_forever, args=(0.05,))
        serving.start()
        try:
            yield engine
        finally:
            engine.shutdown()
            serving.join()
            for container in list(engine.containers.values()):
                container.kill()
