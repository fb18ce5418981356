"""Start a script of the project, or run it to completion."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from runners.workspace.errors import PathNotFound, WorkspaceFailed
from runners.workspace.scripts.package_scripts import Script
from runners.workspace.scripts.script_output import ScriptOutput
from runners.workspace.scripts.script_process import ScriptProcess
from runners.workspace.workspace import ProjectWorkspace

GRACE_SECONDS = 1.0  # between SIGTERM and SIGKILL


async def start_script(
    script: Script, args: Sequence[str], workspace: ProjectWorkspace, output: ScriptOutput
) -> ScriptProcess:
    """Start a script in the workspace's root; the caller must end it.

    Raises:
        PathNotFound: The root does not exist any more.
        WorkspaceFailed: The process could not be started, or an argument is invalid.
    """
    root = workspace.root
    try:
        return await ScriptProcess.start(
            script.argv(args), cwd=root, env=script.env(root), output=output
        )
    except FileNotFoundError:
        raise PathNotFound("The workspace's folder does not exist any more.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "an argument cannot be passed on"
        raise WorkspaceFailed(f"The script could not be started: {reason}.") from None


async def run_script(
    script: Script,
    args: Sequence[str],
    workspace: ProjectWorkspace,
    output: ScriptOutput,
    deadline: float,
) -> int:
    """Run a script to completion and return its exit status.

    Processes that it started are killed afterwards (see `ScriptProcess`).

    Args:
        deadline: `time.monotonic()` value.

    Raises:
        TimeoutError: The script did not exit by the deadline, and was stopped.
        PathNotFound, WorkspaceFailed: As `start_script`.
    """
    process = await start_script(script, args, workspace, output)
    grace = GRACE_SECONDS
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            status = await process.wait()
        grace = 0.0
        return status
    finally:
        await process.end(grace_seconds=grace)
