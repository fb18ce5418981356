"""The stdio transport: gated lines in, messages out; the SDK serves what lies between.

A thread of its own reads and gates, so that a large line never holds up the answers to others.
Small answers are written at once where that cannot block, others by a thread.
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

from decisions.validation.json_input import CALL_LIMIT
from mcp_server.protocol.encoding import encode
from mcp_server.protocol.line_reader import read_lines
from mcp_server.protocol.message_parser import parse_message
from mcp_server.stdio.descriptors import StdioDescriptors

AT_ONCE_BYTES = select.PIPE_BUF  # a pipe that is writable takes so much without blocking
LAST_ANSWERS_S = 1.0  # how long calls under way may take to be answered once the host closed stdin

Inbox = MemoryObjectReceiveStream[SessionMessage | Exception]
Outbox = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def open_stdio_streams(
    stdio: StdioDescriptors, *, after_first_answer: Callable[[], None]
) -> AsyncIterator[tuple[Inbox, Outbox]]:
    """Serve the wire for the length of a block; give what the SDK's server reads and writes."""
    to_server, inbox = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outbox, to_write = anyio.create_memory_object_stream[SessionMessage]()
    reader = _Reader(stdio.read_fd, to_server, outbox.clone())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_write_all, stdio.write_fd, to_write, reader, after_first_answer)
        reader.start()
        yield inbox, outbox


class _Reader:
    """Reads and gates on a thread; knows which requests still wait for their answer."""

    def __init__(
        self,
        fd: int,
        to_server: MemoryObjectSendStream[SessionMessage | Exception],
        refusals: Outbox,
    ) -> None:
        self._fd = fd
        self._to_server = to_server
        self._refusals = refusals
        self._loop = asyncio.get_running_loop()
        self._unanswered: set[str | int] = set()
        self._settled = asyncio.Event()

    def start(self) -> None:
        """Start the thread; it ends with stdin, or with the process."""
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def answered(self, message: SessionMessage) -> None:
        """Note that an answer was written."""
        answer = message.message
        if isinstance(answer, JSONRPCResponse | JSONRPCError) and answer.id is not None:
            self._unanswered.discard(answer.id)
            if not self._unanswered:
                self._settled.set()

    def _read(self) -> None:
        # The loop is closed when the server ended before stdin did.
        with suppress(RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            try:
                for line in read_lines(self._fd, limit=CALL_LIMIT):
                    self._run(self._pass_on(parse_message(line)))
            finally:
                self._run(self._end())

    def _run(self, step: Coroutine[Any, Any, None]) -> None:
        """Do a step on the loop and wait for it: no line is read ahead of a busy server."""
        asyncio.run_coroutine_threadsafe(step, self._loop).result()

    async def _pass_on(self, judged: SessionMessage | JSONRPCError) -> None:
        if isinstance(judged, JSONRPCError):
            await self._refusals.send(SessionMessage(judged))
            return
        if isinstance(judged.message, JSONRPCRequest):
            self._unanswered.add(judged.message.id)
            self._settled.clear()
        await self._to_server.send(judged)

    async def _end(self) -> None:
        if self._unanswered:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_ANSWERS_S):
                    await self._settled.wait()
        self._to_server.close()
        self._refusals.close()


async def _write_all(
    fd: int,
    to_write: MemoryObjectReceiveStream[SessionMessage],
    reader: _Reader,
    after_first_answer: Callable[[], None],
) -> None:
    """Write every message; a host that is gone ends it."""
    first = True
    with suppress(BrokenPipeError, ConnectionResetError):
        async with to_write:
            async for message in to_write:
                await _write(fd, encode(message.message) + b"\n")
                reader.answered(message)
                if first:
                    first = False
                    after_first_answer()


async def _write(fd: int, data: bytes) -> None:
    if len(data) <= AT_ONCE_BYTES and select.select([], [fd], [], 0)[1]:
        os.write(fd, data)
    else:
        await asyncio.to_thread(_write_blocking, fd, data)


def _write_blocking(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        select.select([], [fd], [])  # the host may have made its end non-blocking
        rest = rest[os.write(fd, rest) :]
