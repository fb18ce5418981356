"""Start a script of the project, or run it to completion."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence

from runners.processes.supervised import Order, SupervisedProgram
from runners.workspace.errors import WorkspaceFailed
from runners.workspace.scripts.package_scripts import Script
from runners.workspace.scripts.script_output import ScriptOutput
from runners.workspace.workspace import ProjectWorkspace

GRACE_SECONDS = 1.0  # between SIGTERM and SIGKILL


class RunningScript:
    """A running script; its starter calls `end`.

    Attributes:
        output: its stdout and stderr, in order.
    """

    def __init__(self, program: SupervisedProgram, output: ScriptOutput) -> None:
        self.output, self._program = output, program
        self._reading = asyncio.create_task(self._read())

    @property
    def has_ended(self) -> bool:
        """Whether the script and all that it started have ended."""
        return self._program.has_ended

    async def wait(self) -> int:
        """Return the exit status, 128 and the number for a signal, once all output is read."""
        await asyncio.wait({self._reading})
        return await self._program.wait()

    async def end(self) -> None:
        """Send SIGTERM to the script; after GRACE_SECONDS kill it with all that it started."""
        try:
            if not self.has_ended:
                self._program.terminate()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.wait(), GRACE_SECONDS)
        finally:
            self._reading.cancel()
            await self._program.end()

    async def _read(self) -> None:
        async for _, data in self._program.pieces():
            self.output.feed(data)


async def start_script(
    script: Script, args: Sequence[str], workspace: ProjectWorkspace, output: ScriptOutput
) -> RunningScript:
    """Start a script in the workspace's root; the caller must end it.

    Raises:
        WorkspaceFailed: No process could be started.
    """
    root = workspace.root
    order = Order(argv=script.argv(args), env=script.env(root), cwd=str(root))
    try:
        return RunningScript(await SupervisedProgram.start(order, joins_streams=True), output)
    except OSError as error:
        raise WorkspaceFailed(f"The script could not be started: {error.strerror}.") from None


async def run_script(
    script: Script,
    args: Sequence[str],
    workspace: ProjectWorkspace,
    output: ScriptOutput,
    deadline: float,
) -> int:
    """Run a script to completion and return its exit status.

    Processes that it started are killed afterwards.

    Args:
        deadline: `time.monotonic()` value.

    Raises:
        TimeoutError: The script did not exit by the deadline, and was stopped.
        WorkspaceFailed: As `start_script`.
    """
    running = await start_script(script, args, workspace, output)
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            return await running.wait()
    finally:
        await running.end()
