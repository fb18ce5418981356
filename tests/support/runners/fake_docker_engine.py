"""A simulated Docker engine: the engine's HTTP API on a Unix socket, with bubblewrap as containers.

It behaves like Docker 20.10 where the runner depends on it: a container has the image's shell (dash
at /bin/sh) and only the mounts of its request, outlives its client, gets the end of its stdin when
its client disconnects after the start, and can be removed by name. `faults` makes the engine fail,
hang or stop at a request. Not simulated: users, limits, a noexec /tmp; `make fleet-trial` has a
real engine.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import psutil

API = "1.41"
IMAGE = "debian:bookworm-slim"
# Process 1 of a container, as Docker's init: it ends with the command, and all others with it.
INIT = 'exec 3<&0; "$@" <&3 3<&- & exec 3<&-; wait $!'
Fault = Literal["fail", "hang", "stop"]


@dataclass(slots=True)
class Container:
    """A container: its create request, and the process that replaces it."""

    id: str
    request: dict[str, Any]
    name: str = ""
    process: subprocess.Popen[bytes] | None = None
    started: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Start the container's command."""
        self.process = subprocess.Popen(
            [*sandbox(self.request), *self.request["Cmd"]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self.started.set()

    def close_stdin(self) -> None:
        """End the command's stdin: its client disconnected."""
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def kill(self) -> None:
        """Kill all processes of the container, and wait until they have ended."""
        if self.process is not None:
            inside: list[psutil.Process] = []
            with contextlib.suppress(psutil.NoSuchProcess):
                inside = psutil.Process(self.process.pid).children(recursive=True)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # bubblewrap and its process 1
            self.process.wait()
            psutil.wait_procs(inside, timeout=10)
            self.close_stdin()
        self.started.set()


def sandbox(request: dict[str, Any]) -> list[str]:
    """Return the bubblewrap command that has the container's mounts, folder and variables."""
    bwrap = shutil.which("bwrap")
    assert bwrap is not None
    words = [bwrap, "--unshare-pid", "--as-pid-1", "--clearenv"]
    words += ["--proc", "/proc", "--dev", "/dev", "--ro-bind", "/usr", "/usr"]
    for name in ("/bin", "/sbin", "/lib", "/lib64"):
        if Path(name).is_symlink():
            words += ["--symlink", str(Path(name).readlink()), name]
        elif Path(name).exists():
            words += ["--ro-bind", name, name]
    for target in request["HostConfig"]["Tmpfs"]:
        words += ["--tmpfs", target]
    for mount in request["HostConfig"]["Mounts"]:
        words += ["--bind", mount["Source"], mount["Target"]]
    for variable in ["PATH=/usr/bin:/bin", *request["Env"]]:
        words += ["--setenv", *variable.split("=", 1)]
    return [*words, "--chdir", request["WorkingDir"], "--", "/bin/sh", "-c", INIT, "init"]


class Engine(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """The engine; `created` lists all containers, `containers` those that were not removed.

    `faults` has what happens at the request whose path ends so, or whose method is DELETE: an
    error, no answer until `thaw`, or the end of the engine with all its containers.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, socket_path: Path) -> None:
        super().__init__(str(socket_path), _Handler)
        self.url = f"unix://{socket_path}"
        self.containers: dict[str, Container] = {}
        self.created: list[Container] = []
        self.faults: dict[str, Fault] = {}
        self.connections: set[socket.socket] = set()
        self._thawed = threading.Event()

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection and add an address: a Unix socket's peer has none."""
        accepted = super().get_request()[0]
        self.connections.add(accepted)
        return accepted, ("engine", 0)

    def thaw(self) -> None:
        """Answer requests again."""
        self.faults.clear()
        self._thawed.set()

    def fault_at(self, step: str) -> Fault | None:
        """Return the fault of a request; a hanging one returns when the engine is thawed."""
        fault = next((self.faults[end] for end in self.faults if step.endswith(end)), None)
        if fault == "hang":
            self._thawed.wait(60)
        elif fault == "stop":
            self.stop()
        return None if fault == "hang" else fault

    def stop(self) -> None:
        """Kill the containers and close all connections, as an engine that is stopped."""
        for container in self.containers.values():
            container.kill()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Engine

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""

    def do_GET(self) -> None:
        path = self._path()
        if path in {"/version", "/_ping"}:
            self._respond(200, {"ApiVersion": API, "MinAPIVersion": "1.12", "Version": "20.10"})
        elif path == f"/images/{IMAGE}/json":
            self._respond(200, {"Id": "sha256:1"})
        elif path == "/containers/json":
            self._respond(200, self._listed())
        elif path.endswith("/json") and (found := self._container(path)):
            self._respond(200, {"Id": found.id, "Config": {"Tty": found.request["Tty"]}})
        else:
            what = "image" if path.startswith("/images/") else "container"
            self._respond(404, {"message": f"No such {what}: {path}"})

    def do_POST(self) -> None:
        path = self._path()
        size = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(size) or b"null")
        fault = self.server.fault_at(path)
        if fault == "fail":
            self._respond(500, {"message": "the engine\nis out of order"})
        elif fault == "stop":
            self.close_connection = True
        elif path == "/containers/create":
            self._create(body)
        elif (found := self._container(path)) is None:
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
        fault, found = self.server.fault_at("DELETE"), self._container(self._path())
        if fault == "fail":
            self._respond(500, {"message": "the engine\nis out of order"})
        elif fault == "stop":
            self.close_connection = True
        elif found is None:
            self._respond(404, {"message": "No such container"})
        else:
            assert self._query() == {"v": ["True"], "force": ["True"], "link": ["False"]}
            self.server.containers.pop(found.id, None)
            found.kill()
            self._respond(204)

    def _listed(self) -> list[dict[str, Any]]:
        """Return the containers with the label that the filter names."""
        (wanted,) = json.loads(self._query()["filters"][0])["label"]
        name, _, value = wanted.partition("=")
        found = self.server.containers.values()
        labels = [(one.id, one.request["Labels"]) for one in found]
        return [{"Id": one, "Labels": has} for one, has in labels if has.get(name) == value]

    def _create(self, body: dict[str, Any]) -> None:
        number, names = len(self.server.created), self._query().get("name", [""])
        container = Container(f"c{number}", body, names[0])
        self.server.created.append(container)
        self.server.containers[container.id] = container
        self._respond(201, {"Id": container.id, "Warnings": []})

    def _attach(self, container: Container) -> None:
        """Send stdout and stderr of the container as frames until the container exits."""
        self.close_connection = True
        self.wfile.write(
            b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
            b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        )
        self.wfile.flush()
        threading.Thread(target=self._end_stdin, args=(container,), daemon=True).start()
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

    def _end_stdin(self, container: Container) -> None:
        with contextlib.suppress(OSError, ValueError):  # ValueError: the command has ended
            while data := self.connection.recv(65536):
                container.started.wait(60)
                if container.process is not None and container.process.stdin is not None:
                    os.write(container.process.stdin.fileno(), data)
        if container.started.is_set():  # else nothing ends it any more, as in a real engine
            container.close_stdin()

    def _copy(self, number: int, stream: Any, lock: threading.Lock) -> None:
        with contextlib.suppress(OSError), stream:
            while data := stream.read1(65536):
                with lock:
                    self.wfile.write(struct.pack(">BxxxL", number, len(data)) + data)
                    self.wfile.flush()

    def _path(self) -> str:
        return urlsplit(self.path).path.removeprefix(f"/v{API}")

    def _query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query)

    def _container(self, path: str) -> Container | None:
        name = path.split("/")[2] if path.count("/") >= 2 else ""
        found = self.server.containers.values()
        return next((one for one in found if name in (one.id, one.name)), None)

    def _respond(self, status: int, value: Any = None) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        with contextlib.suppress(OSError):  # a client that has given up
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
            engine.thaw()
            engine.shutdown()
            serving.join()
            for container in list(engine.containers.values()):
                container.kill()
