"""An agent host that sends raw JSON-RPC without changes: over stdio here, over HTTP in
mcp_web_host.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from decisions.identity.principals import Principal
from mcp_server.protocol.request_context import MessageContext
from mcp_server.protocol.transport import Transport
from mcp_server.server import ContinuityServer
from mcp_server.stdio.descriptors import StdioDescriptors
from mcp_server.stdio.streams import open_stdio_streams
from runners.targets.runner_endpoint import close_connections
from tests.support.rest.rest import ERROR_KEYS

TIMEOUT_S = 60.0
INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class PrincipalTransport:
    """Authenticate every call as one principal, without a home and without a stack."""

    def __init__(self, principal: Principal) -> None:
        self.principal = principal

    async def authenticate(self, context: MessageContext, *, needs_stack: bool) -> Principal:
        """Return the caller."""
        return self.principal


class Host(ABC):
    """The client's end of one connection: it sends raw JSON-RPC and reads the answers."""

    actor = "local"  # the actor that the server authenticates

    def __init__(self) -> None:
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self._other_answers: dict[Any, dict[str, Any]] = {}
        self._last_id = 0

    @abstractmethod
    def send(self, line: bytes) -> None:
        """Send one raw message; return before the answer arrives."""

    @abstractmethod
    def close(self) -> None:
        """End the connection."""

    def receive(self) -> dict[str, Any]:
        """Return the next message of the server."""
        return self._messages.get(timeout=TIMEOUT_S)

    def initialize(self) -> None:
        """Initialize the session, as a client of a revision with a handshake does."""
        self.request("initialize", INITIALIZE)
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def answer_to(self, request_id: object) -> dict[str, Any]:
        """Return the answer to a request; store answers to other requests for later."""
        while request_id not in self._other_answers:
            message = self.receive()
            if "method" not in message:
                self._other_answers[message["id"]] = message
        return self._other_answers.pop(request_id)

    def start_request(self, method: str, params: Mapping[str, Any] | bytes) -> int:
        """Send a request, whose params may be raw JSON, and return its id."""
        self._last_id += 1
        raw = params if isinstance(params, bytes) else json.dumps(params).encode()
        head = f'{{"jsonrpc":"2.0","id":{self._last_id},"method":"{method}","params":'
        self.send(head.encode() + raw + b"}")
        return self._last_id

    def request(self, method: str, params: Mapping[str, Any] | bytes) -> dict[str, Any]:
        """Send a request and return its answer."""
        return self.answer_to(self.start_request(method, params))

    def start_call(self, tool: str, arguments: Mapping[str, Any] | bytes) -> int:
        """Call a tool, whose arguments may be raw JSON, and return the request's id."""
        raw = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
        return self.start_request(
            "tools/call", b'{"name":"' + tool.encode() + b'","arguments":' + raw + b"}"
        )

    def call(self, tool: str, arguments: Mapping[str, Any] | bytes) -> dict[str, Any]:
        """Call a tool and return the answer."""
        return self.answer_to(self.start_call(tool, arguments))


class StdioHost(Host):
    """A host with its own server at the other end of two pipes.

    The server, its gate and its transport are those of `mcp_stdio`, on a thread of this process, so
    that the test uses the same database.
    """

    def __init__(self, transport: Transport, toolsets: Sequence[str] | None = None) -> None:
        super().__init__()
        server_reads, self._to_server = os.pipe()
        self._from_server, server_writes = os.pipe()
        self._descriptors = [server_reads, server_writes, self._to_server, self._from_server]
        self.server = ContinuityServer(toolsets or settings.CONTINUITY_MCP_TOOLSETS, transport)
        stdio = StdioDescriptors(server_reads, server_writes)
        self._threads = [
            threading.Thread(target=lambda: asyncio.run(self._serve(stdio)), name="server"),
            threading.Thread(target=self._listen, name="host"),
        ]
        for thread in self._threads:
            thread.start()
        self.initialize()

    async def _serve(self, stdio: StdioDescriptors) -> None:
        async with open_stdio_streams(stdio, after_first_response=lambda: None) as (inbox, outbox):
            await self.server.run(inbox, outbox, self.server.stream_options())
        await close_connections()
        os.close(stdio.write_fd)
        self._descriptors.remove(stdio.write_fd)

    def _listen(self) -> None:
        with os.fdopen(self._from_server, "rb", closefd=False) as lines:
            for line in lines:
                self._messages.put(json.loads(line))

    def close(self) -> None:
        """Close the server's stdin and wait until it ends."""
        os.close(self._to_server)
        self._descriptors.remove(self._to_server)
        for thread in self._threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive(), f"the {thread.name} thread did not end"
        for fd in self._descriptors:
            os.close(fd)

    def send(self, line: bytes) -> None:
        """Write one raw line."""
        rest = memoryview(line + b"\n")
        while rest:
            rest = rest[os.write(self._to_server, rest) :]


def structured(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the structured answer of a successful call; assert that the text block equals it."""
    result = answer["result"]
    assert result["isError"] is False, result
    (block,) = result["content"]
    assert json.loads(block["text"]) == result["structuredContent"]
    content: dict[str, Any] = result["structuredContent"]
    return content


def error_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error of a refused call and check its shape."""
    error = _refusal(answer)
    assert set(error) - {"nextActions"} == ERROR_KEYS
    assert error.get("nextActions") != []
    return error


def code_of_answer(answer: Mapping[str, Any]) -> str:
    """Return the code of an answer in the form that the rows of bad inputs use."""
    if "error" in answer:
        return f"RPC_{answer['error']['code']}"
    return str(error_of(answer)["errorCode"]) if answer["result"]["isError"] else "OK"


def error_in_s2(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error of a refused call of a Continuity API tool."""
    error = _refusal(answer)
    assert set(error) == {"code", "detail"}
    return error


def error_in_s4(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error of a refused call of a workspace tool."""
    content = _refusal(answer)
    assert set(content) == {"error"}
    error: dict[str, Any] = content["error"]
    return error


def _refusal(answer: Mapping[str, Any]) -> dict[str, Any]:
    result = answer["result"]
    assert result["isError"] is True, result
    assert "structuredContent" not in result
    (block,) = result["content"]
    error: dict[str, Any] = json.loads(block["text"])
    return error
