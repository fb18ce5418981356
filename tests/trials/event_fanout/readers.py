"""Many readers of event streams in one process; each records the seqs that it received."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

CONCURRENT_CONNECTS = 50  # connections that are opened at the same time


def raise_file_limit(number: int) -> None:
    """Raise this process's limit of open files to `number` if it is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, max(hard, number)))


class EventStreamReader:
    """A reader of one stream; it reconnects with its last seq when the connection breaks."""

    def __init__(self, url: str, token: str, path: str) -> None:
        address = urlsplit(url)
        self._host, self._port = str(address.hostname), int(address.port or 80)
        self._token, self._path = token, path
        self.seqs: list[int] = []
        self.connections = 0  # number of connections
        self.has_ended = False
        self._writer: asyncio.StreamWriter | None = None

    async def read(self, limit: asyncio.Semaphore) -> None:
        """Read until the stream ends after the run's last event; reconnect after every error."""
        while not self.has_ended:
            try:
                async with limit:
                    lines = await self._connect()
                await self._take(lines)
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.05)
            finally:
                self.disconnect()

    async def _connect(self) -> asyncio.StreamReader:
        lines, self._writer = await asyncio.open_connection(self._host, self._port)
        last = f"Last-Event-ID: {self.seqs[-1]}\r\n" if self.seqs else ""
        self._writer.write(
            f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
            f"Authorization: Bearer {self._token}\r\n{last}\r\n".encode()
        )
        status = await lines.readline()
        if b" 204 " in status:
            self.has_ended = True
            return lines
        if b" 200 " not in status:
            await asyncio.sleep(0.2)
            raise ConnectionError(status)
        self.connections += 1
        return lines

    async def _take(self, lines: asyncio.StreamReader) -> None:
        while not self.has_ended and (line := await lines.readline()):
            if line.startswith(b"id: "):
                self.seqs.append(int(line[4:]))
            elif line == b"0\r\n":  # the last chunk: the server ended the stream itself
                return

    def disconnect(self) -> None:
        """Abort the connection."""
        if self._writer is not None:
            self._writer.transport.abort()


class EventStreamReaders:
    """Readers that read at the same time."""

    def __init__(self, readers: Sequence[EventStreamReader]) -> None:
        self.readers = readers
        self._gate = asyncio.Semaphore(CONCURRENT_CONNECTS)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start all readers."""
        self._tasks = [asyncio.create_task(reader.read(self._gate)) for reader in self.readers]

    async def wait_until(
        self, condition: Callable[[EventStreamReader], bool], within_s: float = 120
    ) -> None:
        """Wait until the condition is true for every reader."""
        deadline = time.monotonic() + within_s
        while not all(map(condition, self.readers)):
            if time.monotonic() > deadline:
                missing = sum(not condition(reader) for reader in self.readers)
                raise TimeoutError(f"{missing} of {len(self.readers)} readers are not there yet")
            await asyncio.sleep(0.002)

    async def stop(self) -> None:
        """Stop every reader that has not finished."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
