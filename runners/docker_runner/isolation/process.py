"""No isolation: commands run as the runner does, and see what it sees. For development only.

They are still ended whole, and have limits of memory, processor time and file size.
"""

from __future__ import annotations

import shutil

from runners.child_environment import child_environment
from runners.docker_runner.isolation.base import Command, RunnerFolder, start_supervised
from runners.processes.supervised import Order, SupervisedProgram


class ProcessIsolation:
    """Commands as plain processes in the folder."""

    def __init__(self, runner_folder: RunnerFolder) -> None:
        self._runner_folder = runner_folder
        self._shell = shutil.which("bash") or "/bin/sh"

    async def check(self) -> None:
        """Nothing can be missing."""

    async def sweep(self) -> None:
        """Nothing is left behind: a command's supervisor ends with its runner."""

    async def start(self, command: Command) -> SupervisedProgram:
        """Start a command; see `Isolation`."""
        limits = self._runner_folder.limits
        return await start_supervised(
            Order(
                argv=[self._shell, "-c", command.line],
                env={**child_environment(), **command.env},
                cwd=str(self._runner_folder.root / command.folder),
                limits={
                    "memory": limits.memory_bytes,
                    "file": limits.file_bytes,
                    "core": 0,
                    "cpu": limits.cpu_seconds(command.timeout_s),
                },
            )
        )
