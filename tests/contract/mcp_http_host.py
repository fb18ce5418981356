"""The agent host of mcp_host.py over HTTP: streamable HTTP at /mcp, or SSE at /sse."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator

import httpx

from decisions.identity.principals import authenticate
from tests.contract.mcp_host import INITIALIZE, TIMEOUT_S, Host
from tests.support.rest.rest import NO_TLS, bearer

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
MODERN = "2026-07-28"
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class WebHost(Host):
    """A host that sends each message as a separate request on a separate thread."""

    path = "/mcp"

    def __init__(self, address: str, token: str) -> None:
        super().__init__()
        self.actor = authenticate(token).id
        self.client = httpx.Client(
            base_url=address,
            headers={**HEADERS, **bearer(token)},
            timeout=TIMEOUT_S,
            verify=NO_TLS,
            limits=httpx.Limits(max_connections=None),
        )
        self._threads: list[threading.Thread] = []
        self.open()
        self.initialize()
        # The transport requires the negotiated revision in every later request.
        self.client.headers["mcp-protocol-version"] = INITIALIZE["protocolVersion"]

    def open(self) -> None:
        """Prepare for the first message."""

    def send(self, line: bytes) -> None:
        """Post one raw message."""
        self._start(self._post, line)

    def _start(self, function: object, *args: object) -> None:
        thread = threading.Thread(target=function, args=args, name="host")  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _post(self, line: bytes) -> None:
        with self.client.stream("POST", self.path, content=line) as response:
            session_id = response.headers.get("mcp-session-id")
            if session_id:
                self.client.headers["mcp-session-id"] = session_id
            self._read(response)

    def _read(self, response: httpx.Response) -> None:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            for data in data_of(response.iter_lines()):
                self._messages.put(json.loads(data))
        elif body := response.read():
            self._messages.put(json.loads(body))

    def close(self) -> None:
        """Wait for the outstanding answers."""
        for thread in self._threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive(), "a request was never answered"
        self.client.close()


class SseHost(WebHost):
    """A host that reads answers from one stream and posts to the address in its first event."""

    def open(self) -> None:
        """Open the stream."""
        self._is_open = threading.Event()
        self._start(self._listen)
        assert self._is_open.wait(TIMEOUT_S)

    def _listen(self) -> None:
        with self.client.stream("GET", "/sse") as self._stream:
            lines = data_of(self._stream.iter_lines())
            self.path = next(lines)
            self._is_open.set()
            with contextlib.suppress(httpx.TransportError):  # the test closes it
                for data in lines:
                    self._messages.put(json.loads(data))

    def send(self, line: bytes) -> None:
        """Post one raw message; the answer arrives on the stream."""
        self._post(line)

    def close(self) -> None:
        """Close the stream, then the host."""
        stream = self._stream.extensions["network_stream"].get_extra_info("socket")
        stream.shutdown(2)
        super().close()


def data_of(lines: Iterator[str]) -> Iterator[str]:
    """Yield the data of each event of a stream."""
    return (line.removeprefix("data: ") for line in lines if line.startswith("data: "))
