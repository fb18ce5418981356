"""The message streams of the stdio transport, between the descriptors and the SDK's server.

A separate thread reads and parses, so that a large line does not delay the responses to other
calls. A small response is written directly if that cannot block, any other by a thread.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from decisions.foundation.validation.json_input import CALL_LIMIT
from mcp_server.protocol.encoding import encode
from mcp_server.protocol.line_reader import read_lines
from mcp_server.protocol.message_parser import parse_message
from mcp_server.stdio.descriptors import StdioDescriptors

DIRECT_WRITE_BYTES = select.PIPE_BUF  # a writable pipe accepts this much without blocking
DRAIN_S = 1.0  # how long the server waits for responses to be sent after the host closed stdin

Inbox = MemoryObjectReceiveStream[SessionMessage | Exception]
Outbox = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def open_stdio_streams(
    stdio: StdioDescriptors, *, after_first_response: Callable[[], None]
) -> AsyncIterator[tuple[Inbox, Outbox]]:
    """Read and write messages during a block; yield the streams for the SDK's server.

    Args:
        stdio: The descriptors to read and write.
        after_first_response: Called once, on the event loop, after the first response is written.
    """
    to_server, inbox = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outbox, to_write = anyio.create_memory_object_stream[SessionMessage]()
    reader = _Reader(stdio.read_fd, to_server, outbox.clone())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_write_all, stdio.write_fd, to_write, reader, after_first_response)
        reader.start()
        yield inbox, outbox


class _Reader:
    """Reads and parses messages on a thread, and tracks the requests without a response."""

    def __init__(
        self,
        fd: int,
        to_server: MemoryObjectSendStream[SessionMessage | Exception],
        to_client: Outbox,
    ) -> None:
        self._fd = fd
        self._to_server = to_server
        self._to_client = to_client
        self._loop = asyncio.get_running_loop()
        self._unanswered: set[str | int] = set()
        self._all_answered = asyncio.Event()

    def start(self) -> None:
        """Start the thread; it ends at the end of stdin or of the process."""
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def mark_written(self, message: SessionMessage) -> None:
        """Mark the request that a message answers as answered."""
        response = message.message
        if isinstance(response, JSONRPCResponse | JSONRPCError) and response.id is not None:
            self._unanswered.discard(response.id)
            if not self._unanswered:
                self._all_answered.set()

    def _read(self) -> None:
        # The loop and the streams are closed if the server ended before stdin did.
        with suppress(RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            try:
                for line in read_lines(self._fd, limit=CALL_LIMIT):
                    self._run(self._forward(parse_message(line)))
            finally:
                self._run(self._end())

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine on the loop and wait for it, so that a busy server gets no more lines."""
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _forward(self, parsed: SessionMessage | JSONRPCError) -> None:
        if isinstance(parsed, JSONRPCError):
            await self._to_client.send(SessionMessage(parsed))
            return
        if isinstance(parsed.message, JSONRPCRequest):
            self._unanswered.add(parsed.message.id)
            self._all_answered.clear()
        await self._to_server.send(parsed)

    async def _end(self) -> None:
        if self._unanswered:
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    await self._all_answered.wait()
        self._to_server.close()
        self._to_client.close()


async def _write_all(
    fd: int,
    to_write: MemoryObjectReceiveStream[SessionMessage],
    reader: _Reader,
    after_first_response: Callable[[], None],
) -> None:
    """Write every message until the server ends or the host closes its end."""
    first = True
    with suppress(BrokenPipeError, ConnectionResetError):
        async with to_write:
            async for message in to_write:
                await _write(fd, encode(message.message) + b"\n")
                reader.mark_written(message)
                if first:
                    first = False
                    after_first_response()


async def _write(fd: int, data: bytes) -> None:
    if len(data) <= DIRECT_WRITE_BYTES and select.select([], [fd], [], 0)[1]:
        os.write(fd, data)
    else:
        await asyncio.to_thread(_write_blocking, fd, data)


def _write_blocking(fd: int, data: bytes) -> None:
    unwritten = memoryview(data)
    while unwritten:
        select.select([], [fd], [])  # the host may have made the pipe non-blocking
        unwritten = unwritten[os.write(fd, unwritten) :]
