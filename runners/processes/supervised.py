"""A program under a supervisor of its own (`supervisor.py`): what it prints, and its whole end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

StreamName = Literal["stdout", "stderr"]
Piece = tuple[StreamName, bytes]
SUPERVISOR = Path(__file__).with_name("supervisor.py")
CHUNK = 64 * 1024
END_S = 20.0  # for the kernel to be done with what was killed
log = logging.getLogger(__name__)
_endings: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class Order:
    """The order that a supervisor receives.

    Attributes:
        hidden: arguments that come before the others and that no list of processes shows.
        filter: of system calls, in hexadecimal digits, for bubblewrap.
        limits: resource limits by name; see supervisor.py.
        groups: control groups to make, with what is written into their files.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str = "/"
    hidden: Sequence[str] = ()
    filter: str = ""
    limits: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class SupervisedProgram:
    """A program from `start` until `end`; bound to one event loop."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, order: Order, *, joins_streams: bool = False) -> SupervisedProgram:
        """Start a program; should this process die, its supervisor ends it. If this call fails or
        is cancelled, no process is left.

        Args:
            joins_streams: stderr is written to stdout, in order.

        Raises:
            OSError: The supervisor could not be started, or ended at once.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(SUPERVISOR),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT if joins_streams else asyncio.subprocess.PIPE,
            env={},
            cwd="/",
            start_new_session=True,
        )
        made = cls(process)
        try:
            pipe = _pipe_to(process)
            pipe.write(json.dumps(asdict(order)).encode() + b"\n")
            await pipe.drain()
        except BaseException:
            await made.end()
            raise
        return made

    @property
    def has_ended(self) -> bool:
        """Whether the program has ended; nothing of it is left then."""
        return self._process.returncode is not None

    def terminate(self) -> None:
        """Send SIGTERM to the program's process group."""
        with contextlib.suppress(ConnectionError):
            _pipe_to(self._process).write(b"\n")

    async def pieces(self) -> AsyncIterator[Piece]:
        """Yield what it prints until both streams are at their end."""
        coming: asyncio.Queue[Piece | None] = asyncio.Queue(8)
        readers = [
            asyncio.create_task(_read(self._process.stdout, "stdout", coming)),
            asyncio.create_task(_read(self._process.stderr, "stderr", coming)),
        ]
        try:
            open_streams = len(readers)
            while open_streams:
                if (piece := await coming.get()) is None:
                    open_streams -= 1
                else:
                    yield piece
        finally:
            for reader in readers:
                reader.cancel()

    async def wait(self) -> int:
        """Return the program's exit status, 128 and the number for a signal; nothing of it is left
        by then.
        """
        return await self._process.wait()

    async def end(self) -> None:
        """Kill the program with all that it started; done to its end also when the waiting caller
        is cancelled.
        """
        ending = asyncio.create_task(self._end())
        _endings.add(ending)
        ending.add_done_callback(_endings.discard)
        await asyncio.shield(ending)

    async def _end(self) -> None:
        _pipe_to(self._process).close()
        try:
            async with asyncio.timeout(END_S):
                # What is still in the pipes has to go, or the transport never ends.
                await asyncio.gather(_drain(self._process.stdout), _drain(self._process.stderr))
                await self._process.wait()
        except TimeoutError:
            log.error("a command cannot be ended; its supervisor %d waits", self._process.pid)


async def _read(
    stream: asyncio.StreamReader | None, name: StreamName, coming: asyncio.Queue[Piece | None]
) -> None:
    while stream is not None and (data := await stream.read(CHUNK)):
        await coming.put((name, data))
    await coming.put(None)


async def _drain(stream: asyncio.StreamReader | None) -> None:
    with contextlib.suppress(OSError):
        while stream is not None and await stream.read(CHUNK):
            pass


def _pipe_to(process: asyncio.subprocess.Process) -> asyncio.StreamWriter:
    assert process.stdin is not None  # noqa: S101  (start() asked for a pipe)
    return process.stdin
