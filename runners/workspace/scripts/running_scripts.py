"""Start a script of the project, or run it to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from runners.workspace.errors import PathNotFound, WorkspaceFailed
from runners.workspace.scripts.package_scripts import Script
from runners.workspace.scripts.script_output import ScriptOutput
from runners.workspace.scripts.script_process import ScriptProcess
from runners.workspace.workspace import Workspace

GRACE_SECONDS = 1.0  # between asking a script to end and killing it


async def start_script(
    script: Script, args: Sequence[str], workspace: Workspace, output: ScriptOutput
) -> ScriptProcess:
    """Start a script in the workspace's root; the caller ends it.

    Raises:
        PathNotFound: The root is gone.
        WorkspaceFailed: The system starts no further process, or does not take the arguments.
    """
    root = workspace.root
    try:
        return await ScriptProcess.start(
            script.argv(args), cwd=root, env=script.env(root), output=output
        )
    except FileNotFoundError:
        raise PathNotFound("The workspace's folder is gone.") from None
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else "an argument cannot be passed on"
        raise WorkspaceFailed(f"The script could not be started: {told}.") from None


async def run_script(
    script: Script,
    args: Sequence[str],
    workspace: Workspace,
    output: ScriptOutput,
    deadline: float,
) -> int:
    """Run a script to its end and return its exit status; what it started is ended with it, but for
    what left the group and cleared its environment.

    `end_at` is in `time.monotonic()` seconds.

    Raises:
        TimeoutError: It did not end by then, and was stopped.
        PathNotFound, WorkspaceFailed: As `start_script` says.
    """
    running = await start_script(script, args, workspace, output)
    grace = GRACE_SECONDS
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            status = await running.wait()
        grace = 0.0
        return status
    finally:
        await running.end(grace_seconds=grace)
