"""A program of the project, with what it starts: ended as a whole, whoever ends first.

It leads a session and a process group of its own. Beside it sits a leash: a shell that reads from
the life line, a pipe whose other end this process alone holds. The read returns when we are gone,
killed or not; then the leash kills what bears the program's mark, also outside of the group, and
the group. Only what has left the group and cleared its environment is not found. As long as the
leash lives, the group's number cannot be given to anybody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from runners.workspace.scripts.script_output import ScriptOutput

MARK = "PROJECT_SCRIPT"
CHUNK = 64 * 1024
PIPE_CHUNKS = 16  # as many as the largest pipe holds
END_SECONDS = 5.0
# One look is not enough: what starts another while we look is gone before it is seen, and the other
# was not there when we began; what becomes another program shows no environment for a moment.
QUIET_LOOKS = 3
_PROC = Path("/proc")
# $1 is the mark, the rest the program. The leash itself does not bear the mark: what a process
# exports shows in what it starts, not in its own place in /proc.
_WRAP = r"""
exec 3<&0 </dev/null
(
    trap '' TERM INT HUP
    read -r _ <&3
    quiet=0 left=300
    while [ "$quiet" -lt 3 ] && [ "$left" -gt 0 ]; do
        quiet=$((quiet + 1)) left=$((left - 1))
        for found in $(grep -lsF "$1" /proc/[0-9]*/environ); do
            found=${found#/proc/}
            kill -KILL "${found%/environ}" && quiet=0
        done
        sleep 0.01
    done
    kill -KILL 0
) >/dev/null 2>&1 &
exec 3<&-
export "$1"
shift
exec "$@"
"""
_endings: set[asyncio.Task[None]] = set()


class ScriptProcess:
    """A started program, from `start` until `end`; on one loop.

    Attributes:
        output: what it printed, both streams as they came.
    """

    def __init__(self, output: ScriptOutput) -> None:
        self.output = output
        self._mark = f"{MARK}={uuid.uuid4().hex}"
        self._process: asyncio.subprocess.Process | None = None
        self._life_line = self._printed = -1
        self._is_reading = False

    @classmethod
    async def start(
        cls, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], output: ScriptOutput
    ) -> ScriptProcess:
        """Start a program; whoever stops waiting leaves none behind.

        Raises:
            OSError: The folder is gone, the arguments are too long for the system, or the machine
                has no room for another process.
            ValueError: An argument holds a NUL.
        """
        made = cls(output)
        try:
            await made._start(argv, cwd, env)
        except BaseException:
            made._let_go()
            raise
        return made

    async def wait(self) -> int:
        """Return the program's exit status, negative for a signal; what it started may run on."""
        return await self._leader.wait()

    @property
    def has_ended(self) -> bool:
        """Whether the program itself is over."""
        return self._leader.returncode is not None

    async def end(self, *, grace_seconds: float = 0.0) -> None:
        """End the program and what it started: its group and what bears its mark; wait for that.

        With a grace it is asked first. Safe to call twice. It is done to its end also when whoever
        waits for it is cancelled.
        """
        if self._life_line < 0:
            return
        try:
            if grace_seconds and not self.has_ended:
                self._signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.wait(), grace_seconds)
        finally:
            self._signal(signal.SIGKILL)
            ending = asyncio.create_task(self._bury())
            _endings.add(ending)
            ending.add_done_callback(_endings.discard)
            await asyncio.shield(ending)

    @property
    def _leader(self) -> asyncio.subprocess.Process:
        assert self._process is not None  # noqa: S101  (start() returns no other)
        return self._process

    async def _start(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        life, self._life_line = os.pipe()
        self._printed, printing = os.pipe()
        os.set_blocking(self._printed, False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                _WRAP,
                "sh",
                self._mark,
                *argv,
                cwd=cwd,
                env=env,
                stdin=life,
                stdout=printing,
                stderr=printing,
                start_new_session=True,
            )
        finally:
            os.close(life)
            os.close(printing)
        asyncio.get_running_loop().add_reader(self._printed, self._read)
        self._is_reading = True

    def _read(self) -> None:
        """Take what is there now."""
        try:
            data = os.read(self._printed, CHUNK)
        except BlockingIOError:
            return
        self.output.feed(data)
        if not data:
            self._stop_reading()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader.pid, number)

    async def _bury(self) -> None:
        await asyncio.to_thread(_end_marked, self._mark.encode())
        await self.wait()
        for _ in range(PIPE_CHUNKS):  # not to its end: what got away may still hold the pipe
            if not self._is_reading:
                break
            self._read()
        self._let_go()

    def _stop_reading(self) -> None:
        if self._is_reading:
            asyncio.get_running_loop().remove_reader(self._printed)
            self._is_reading = False

    def _let_go(self) -> None:
        """Close our ends of the pipes: the leash ends what is left."""
        self._stop_reading()
        for end in (self._life_line, self._printed):
            if end >= 0:
                os.close(end)
        self._life_line = self._printed = -1


def _end_marked(mark: bytes) -> None:
    """Kill what bears the mark until nothing does any more; nothing where /proc is absent."""
    deadline = time.monotonic() + END_SECONDS
    quiet = 0
    while quiet < QUIET_LOOKS and time.monotonic() < deadline:
        quiet += 1
        for pid in _marked(mark):
            quiet = 0
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _marked(mark: bytes) -> list[int]:
    found = []
    for process in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone, or another user's
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found
