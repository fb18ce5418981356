"""A server that speaks the extension's protocol with an extension, for tests of the extension.

It accepts every pairing, collects what the extension sends, and sends actions. Uploads and the
files of `browser_upload` are on the same port.
"""

from __future__ import annotations

import http.server
import itertools
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from decisions.foundation.errors import InvalidInput
from runners.paired_browser.connections.hub import NOT_PAIRED
from runners.paired_browser.protocol.messages import read_message

WAIT_SECONDS = 40.0
Message = dict[str, Any]


class _FileHandler(http.server.BaseHTTPRequestHandler):
    server: FileServer

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.uploads[self.path] = (str(self.headers["Content-Type"]), data)
        self.send_response(self.server.upload_status)
        self.end_headers()

    def do_GET(self) -> None:
        data = self.server.files.get(self.path)
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


class FileServer(http.server.ThreadingHTTPServer):
    """Receives the uploads of actions, and has the files for `browser_upload`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _FileHandler)
        self.uploads: dict[str, tuple[str, bytes]] = {}
        self.upload_status = 204
        self.files: dict[str, bytes] = {}


class ExtensionServer:
    """The server.

    Attributes:
        received: every message of the extension, oldest first.
        tasks: the tasks of the next activation.
        acks: what to add to the acknowledgment of messages of a type, such as {"resync": True}.
        acks_results: whether results are acknowledged.
        invalid: the messages that the product would refuse.
    """

    def __init__(self, files: FileServer) -> None:
        self.files = files
        self.port = 0
        self.received: list[Message] = []
        self.secrets = ["secret-0"]
        self.invalid: list[str] = []
        self.tasks: list[Message] = []
        self.acks: dict[str, Message] = {}
        self.acks_results = True
        self.answers: dict[str, queue.Queue[Message]] = {}
        self._ids = itertools.count(1)
        self._socket: ServerConnection | None = None
        self._activated = threading.Condition()
        self.activations = 0

    @property
    def origin(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    def wait_for_extension(self, activations: int = 1) -> None:
        """Wait until the extension has connected this often."""
        with self._activated:
            ok = self._activated.wait_for(
                lambda: self.activations >= activations and self._socket is not None, WAIT_SECONDS
            )
        assert ok, "the extension did not connect"

    def of_type(self, kind: str) -> list[Message]:
        """Return the received messages of a type."""
        return [message for message in self.received if message["type"] == kind]

    def wait_for(self, is_it: Callable[[Message], bool]) -> Message:
        """Wait for a message, also among those that were received before."""
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            for message in list(self.received):
                if is_it(message):
                    return message
            time.sleep(0.005)
        raise AssertionError([message["type"] for message in self.received])

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message to the extension."""
        assert self._socket is not None
        self._socket.send(json.dumps({"v": 1, "id": f"s{next(self._ids)}", **message}))

    def begin(
        self, name: str, params: Mapping[str, Any], *, task_id: str = "task_1", **more: Any
    ) -> str:
        """Send an action and return its id."""
        action_id = more.pop("actionId", None) or f"act_{next(self._ids)}"
        self.answers.setdefault(action_id, queue.Queue())
        self.send(
            {
                "type": "browser_action",
                "id": action_id,
                "actionId": action_id,
                "taskId": task_id,
                "clientId": "plc_test",
                "attempt": 1,
                "timeoutMs": 20_000,
                "action": {name: dict(params)},
                "upload": {
                    "url": f"http://127.0.0.1:{self.files.server_port}/{action_id}",
                    "method": "PUT",
                    "headers": {},
                    "maxBytes": 26_214_400,
                    "expiresAt": 4_102_444_800_000,
                },
                **more,
            }
        )
        return action_id

    def result(self, action_id: str, kind: str = "browser_action_result") -> Message:
        """Wait for the next answer of this type to an action."""
        while True:
            message = self.answers[action_id].get(timeout=WAIT_SECONDS)
            if message["type"] == kind:
                return message

    def perform(self, name: str, params: Mapping[str, Any], **more: Any) -> Message:
        """Send an action and return its result message."""
        return self.result(self.begin(name, params, **more))

    def drop(self) -> None:
        """Close the connection as a server that goes away."""
        socket, self._socket = self._socket, None
        assert socket is not None
        socket.close(1001)

    def serve(self, socket: ServerConnection) -> None:
        """Speak with one extension until it disconnects."""
        try:
            for text in socket:
                self._check(str(text))
                self._receive(socket, json.loads(text))
        except ConnectionClosed:
            pass

    def _check(self, text: str) -> None:
        """Check a message as the product does."""
        try:
            read_message(text)
        except InvalidInput as error:
            self.invalid.append(f"{error}: {text[:300]}")

    def _receive(self, socket: ServerConnection, message: Message) -> None:
        self.received.append(message)
        kind = message["type"]
        if kind == "activate_extension":
            self._activate(socket, message)
        elif kind == "ping":
            socket.send(json.dumps({"v": 1, "type": "pong", "id": message.get("id", "p")}))
        elif kind == "ack":
            self.answers.setdefault(message["id"], queue.Queue()).put(message)
        else:
            if kind == "browser_action_result":
                self.answers.setdefault(message["actionId"], queue.Queue()).put(message)
            if kind != "browser_action_result" or self.acks_results:
                ack = {"v": 1, "type": "ack", "id": message["id"], "ok": True}
                socket.send(json.dumps({**ack, **self.acks.get(kind, {})}))

    def _activate(self, socket: ServerConnection, message: Message) -> None:
        if "secret" in message and message["secret"] not in self.secrets[-2:]:
            socket.close(NOT_PAIRED)
            return
        self.secrets.append(f"secret-{len(self.secrets)}")
        result = {
            "clientId": "plc_test",
            "secret": self.secrets[-1],
            "name": "Test",
            "principal": "me",
            "serverTime": 1_700_000_000_000,
            "pingIntervalMs": 20_000,
            "syncIntervalMs": 20_000,
            "ownOrigins": [self.origin],
            "artifactOrigins": [],
            "tasks": self.tasks,
        }
        ack = {"v": 1, "type": "ack", "id": message["id"], "ok": True, "result": result}
        socket.send(json.dumps(ack))
        with self._activated:
            self._socket = socket
            self.activations += 1
            self._activated.notify_all()


@contextmanager
def extension_server() -> Iterator[ExtensionServer]:
    """Run a server in threads for the length of the block."""
    files = FileServer()
    threading.Thread(target=files.serve_forever, args=(0.05,), daemon=True).start()
    server = ExtensionServer(files)
    try:
        with serve(server.serve, "127.0.0.1", 0, max_size=2**21) as sockets:
            server.port = sockets.socket.getsockname()[1]
            threading.Thread(target=sockets.serve_forever, daemon=True).start()
            yield server
    finally:
        files.shutdown()
        files.server_close()
