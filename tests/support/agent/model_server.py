"""A local HTTP server with the APIs of model providers that sends the turns of a test's script.

`POST /v1/chat/completions` streams as OpenAI does, `POST /v1/messages` as Anthropic does; each
refuses a request that does not have the key as its API wants it. It runs in its own thread, so the
code under test may use any event loop.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.support.agent.model_turns import Turn, anthropic_stream, openai_stream

WAIT_S = 60.0


@dataclass
class ModelRequest:
    """One request, and whether the client disconnected before the response was complete."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    raw: bytes = b""
    answered: threading.Event = field(default_factory=threading.Event)
    disconnected: threading.Event = field(default_factory=threading.Event)

    @property
    def key(self) -> str | None:
        """Return the key as the API of the path takes it, None if the request has it otherwise."""
        bearer, key = self.headers.get("authorization", ""), self.headers.get("x-api-key")
        if self.path.endswith("completions"):
            return bearer.removeprefix("Bearer ") if bearer[:7] == "Bearer " and not key else None
        return key if self.headers.get("anthropic-version") == "2023-06-01" and not bearer else None

    @property
    def tools(self) -> list[str]:
        """Return the names of the tools that the request offers to the model."""
        return [str((tool.get("function") or tool)["name"]) for tool in self.body.get("tools", [])]


Answer = Callable[[ModelRequest], Turn]


class ModelServer:
    """Answer each request with the next turn of its script, or with the result of `answer`.

    Attributes:
        script: the remaining turns; if none is left, the response is a 500.
        answer: if set, called with the request instead of the script.
        requests: all requests so far.
        resume: set this event to resume a stalled stream.
    """

    def __init__(self) -> None:
        self.script: list[Turn] = []
        self.answer: Answer | None = None
        self.requests: list[ModelRequest] = []
        self.resume = threading.Event()
        self.url = ""
        self._new_request = threading.Condition()
        self._loop = asyncio.new_event_loop()

    def wait_for(self, number: int) -> ModelRequest:
        """Wait until this number of requests was received, and return the last of them."""
        with self._new_request:
            assert self._new_request.wait_for(lambda: len(self.requests) >= number, WAIT_S), (
                "no request came"
            )
            return self.requests[number - 1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while (request := await _read(reader)) is not None:
                if not await self._reply(request, reader, writer):
                    break
        writer.close()

    async def _reply(
        self, request: ModelRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send the response; return whether the connection stays open."""
        with self._new_request:
            self.requests.append(request)
            turn = self._turn(request)
            self._new_request.notify_all()
        if turn.status != 200:
            _head(
                writer,
                turn.status,
                {"Content-Type": "application/json", **turn.headers},
                length=len(turn.body.encode()),
            )
            writer.write(turn.body.encode())
            await writer.drain()
            request.answered.set()
            return True
        events = (openai_stream if request.path.endswith("completions") else anthropic_stream)(turn)
        _head(writer, 200, {"Content-Type": "text/event-stream", **turn.headers}, length=None)
        disconnecting = asyncio.ensure_future(_wait_for_disconnect(reader, request))
        try:
            is_complete = await self._stream(turn, events, writer)
        except ConnectionError:
            request.disconnected.set()  # before the first byte `disconnecting` may never have run
            raise
        finally:
            disconnecting.cancel()
            await asyncio.wait({disconnecting})
        if is_complete:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            request.answered.set()
        return is_complete

    def _turn(self, request: ModelRequest) -> Turn:
        if request.key is None:
            return Turn(status=401, body='{"error": {"message": "no key of this API"}}')
        if self.answer is not None:
            return self.answer(request)
        return (
            self.script.pop(0)
            if self.script
            else Turn(status=500, body="the script has no more turns")
        )

    async def _stream(self, turn: Turn, events: list[bytes], writer: asyncio.StreamWriter) -> bool:
        """Send the events as chunks; return whether all were sent."""
        sent = 0
        for event in events:
            stalls = turn.stall_at is not None and sent <= turn.stall_at < sent + len(event)
            if stalls:
                event = await self._stall(turn, event, sent, writer)
                sent = turn.stall_at or 0
            if turn.cut_at is not None and sent + len(event) > turn.cut_at:
                piece = event[: turn.cut_at - sent]
                if piece:
                    length = len(piece) if turn.cut_cleanly else len(event)
                    writer.write(f"{length:x}\r\n".encode() + piece)
                    writer.write(b"\r\n" if turn.cut_cleanly else b"")
                writer.write(b"0\r\n\r\n" if turn.cut_cleanly else b"")
                await writer.drain()
                return False
            writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            await writer.drain()
            sent += len(event)
            await asyncio.sleep(turn.pause_s)
        return True

    async def _stall(
        self, turn: Turn, event: bytes, sent: int, writer: asyncio.StreamWriter
    ) -> bytes:
        """Send the bytes before the stall, wait, and return the rest of the event."""
        head = event[: (turn.stall_at or 0) - sent]
        if head:
            writer.write(f"{len(head):x}\r\n".encode() + head + b"\r\n")
            await writer.drain()
        while not self.resume.is_set() and not writer.is_closing():
            await asyncio.sleep(0.02)
        return event[len(head) :]

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)

        listening = asyncio.start_server(self._serve, "127.0.0.1", 0)
        server = self._loop.run_until_complete(listening)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """Serve until the block ends."""
    server, ready = ModelServer(), threading.Event()
    thread = threading.Thread(target=server._run, args=(ready,), daemon=True)
    thread.start()
    assert ready.wait(WAIT_S)
    try:
        yield server
    finally:
        server.resume.set()
        server._loop.call_soon_threadsafe(server._loop.stop)
        thread.join(WAIT_S)


async def _read(reader: asyncio.StreamReader) -> ModelRequest | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ModelRequest(first.split(" ")[1], headers, json.loads(body or b"{}"), body)


async def _wait_for_disconnect(reader: asyncio.StreamReader, request: ModelRequest) -> None:
    """Record that the client closed the connection during the response."""
    with suppress(ConnectionError):
        while await reader.read(1024):
            pass
    request.disconnected.set()


def _head(
    writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str], *, length: int | None
) -> None:
    size = {"Transfer-Encoding": "chunked"} if length is None else {"Content-Length": str(length)}
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{k}: {v}" for k, v in {**headers, **size}.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
