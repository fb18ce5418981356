"""A program with all its child processes, which are killed together, even if this process dies.

The program leads its own session and process group, and has a marker in its environment that its
children inherit. A watchdog shell in the same group reads from a pipe (the lifeline) whose write
end only this process holds. When this process exits or is killed, the read returns, and the
watchdog kills all processes with the marker, in the group or not, and then the group. A process
that has left the group and cleared its environment is not found. While the watchdog lives, the
process group's id cannot be reused.
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
MAX_PIPE_READS = 16  # of CHUNK bytes; enough for the largest pipe buffer
KILL_SECONDS = 5.0
# Consecutive scans of /proc without a marked process before all count as killed. One is not enough:
# a process may fork and exit during a scan, and during exec its environment is briefly empty.
QUIET_CHECKS = 3
_PROC = Path("/proc")
# $1 is the marker, the rest the program. The watchdog itself does not have the marker: `export`
# changes the environment of children, not the shell's own in /proc.
_WATCHDOG = r"""
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
_end_tasks: set[asyncio.Task[None]] = set()


class ScriptProcess:
    """A running program, from `start` until `end`; bound to one event loop.

    Attributes:
        output: its stdout and stderr, in the order received.
    """

    def __init__(self, output: ScriptOutput) -> None:
        self.output = output
        self._mark = f"{MARK}={uuid.uuid4().hex}"
        self._process: asyncio.subprocess.Process | None = None
        self._lifeline = self._output_pipe = -1
        self._is_reading = False

    @classmethod
    async def start(
        cls, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], output: ScriptOutput
    ) -> ScriptProcess:
        """Start a program; if this call fails or is cancelled, no process is left.

        Raises:
            OSError: The folder does not exist, the arguments are too long, or no further process
                can be started.
            ValueError: An argument contains a NUL.
        """
        process = cls(output)
        try:
            await process._start(argv, cwd, env)
        except BaseException:
            process._close_pipes()
            raise
        return process

    async def wait(self) -> int:
        """Return the program's exit status, negative for a signal; its children may still run."""
        return await self._leader.wait()

    @property
    def has_ended(self) -> bool:
        """Whether the program itself has exited; its children may still run."""
        return self._leader.returncode is not None

    async def end(self, *, grace_seconds: float = 0.0) -> None:
        """Kill the program and its children (its group and all with its marker), and wait for it.

        With a grace period SIGTERM is sent first. Safe to call twice. If the caller is cancelled,
        the killing still completes.
        """
        if self._lifeline < 0:
            return
        try:
            if grace_seconds and not self.has_ended:
                self._signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.wait(), grace_seconds)
        finally:
            self._signal(signal.SIGKILL)
            task = asyncio.create_task(self._kill_and_reap())
            _end_tasks.add(task)
            task.add_done_callback(_end_tasks.discard)
            await asyncio.shield(task)

    @property
    def _leader(self) -> asyncio.subprocess.Process:
        assert self._process is not None  # noqa: S101  (start() returns no other)
        return self._process

    async def _start(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        lifeline, self._lifeline = os.pipe()
        self._output_pipe, write_end = os.pipe()
        os.set_blocking(self._output_pipe, False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                _WATCHDOG,
                "sh",
                self._mark,
                *argv,
                cwd=cwd,
                env=env,
                stdin=lifeline,
                stdout=write_end,
                stderr=write_end,
                start_new_session=True,
            )
        finally:
            os.close(lifeline)
            os.close(write_end)
        asyncio.get_running_loop().add_reader(self._output_pipe, self._read)
        self._is_reading = True

    def _read(self) -> None:
        """Read the output that is available now."""
        try:
            data = os.read(self._output_pipe, CHUNK)
        except BlockingIOError:
            return
        self.output.feed(data)
        if not data:
            self._stop_reading()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader.pid, number)

    async def _kill_and_reap(self) -> None:
        await asyncio.to_thread(_kill_marked, self._mark.encode())
        await self.wait()
        for _ in range(MAX_PIPE_READS):  # not until EOF: a surviving child may hold the pipe open
            if not self._is_reading:
                break
            self._read()
        self._close_pipes()

    def _stop_reading(self) -> None:
        if self._is_reading:
            asyncio.get_running_loop().remove_reader(self._output_pipe)
            self._is_reading = False

    def _close_pipes(self) -> None:
        """Close this process's ends of the pipes; the watchdog then kills what is left."""
        self._stop_reading()
        for end in (self._lifeline, self._output_pipe):
            if end >= 0:
                os.close(end)
        self._lifeline = self._output_pipe = -1


def _kill_marked(mark: bytes) -> None:
    """Kill all processes with the marker until none is left; does nothing without /proc."""
    deadline = time.monotonic() + KILL_SECONDS
    quiet = 0
    while quiet < QUIET_CHECKS and time.monotonic() < deadline:
        quiet += 1
        for pid in _pids_with(mark):
            quiet = 0
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _pids_with(mark: bytes) -> list[int]:
    found = []
    for process in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # exited, or another user's
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found
