"""The interface of isolations: start command lines in the runner's folder, end them completely."""

from __future__ import annotations

import math
import posixpath
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from runners.docker_runner.errors import CommandNotStarted
from runners.processes.supervised import Order, Piece, SupervisedProgram

IsolationName = Literal["bubblewrap", "docker", "process"]
INSIDE = "/workspace"  # path of the folder as isolated commands see it
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of one command.

    Attributes:
        cpus: number of CPUs that it may use.
        processes: number of processes at once.
        file_bytes: size of the largest file that it may write.
        scratch_bytes: size of /tmp and of /dev/shm, each.
    """

    memory_bytes: int = 4096 * MIB
    cpus: float = 2.0
    processes: int = 256
    file_bytes: int = 1024 * MIB
    scratch_bytes: int = 256 * MIB

    def cpu_seconds(self, timeout_s: float) -> int:
        """Return the CPU time limit, in seconds: enough for `cpus` CPUs until the timeout."""
        return math.ceil(timeout_s * self.cpus) + 1


@dataclass(frozen=True, slots=True)
class RunnerFolder:
    """The folder in which commands run.

    Attributes:
        root: the real path; commands may change only what is below it.
        allow_net: commands may use the network.
        closed: folders that no command may see (CONTINUITY_HOME).
    """

    root: Path
    allow_net: bool = False
    closed: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Command:
    """A command line for the shell.

    Attributes:
        folder: working directory: a path below the root, `.` for the root itself.
        env: additional environment variables of the caller.
    """

    line: str
    folder: str
    env: Mapping[str, str]
    timeout_s: float


def inside(folder: str) -> str:
    """Return the path that isolated commands use for a path below the root."""
    return posixpath.normpath(f"{INSIDE}/{folder}")


async def start_supervised(order: Order) -> SupervisedProgram:
    """Start a program.

    Raises:
        CommandNotStarted: The machine has no room for another process.
    """
    try:
        return await SupervisedProgram.start(order)
    except OSError as error:
        raise CommandNotStarted(f"No process can be started: {error.strerror}.") from None


class Running(Protocol):
    """A running command; the caller that started it must call `end`."""

    def pieces(self) -> AsyncIterator[Piece]:
        """Yield the output as it arrives, until both streams end."""

    async def wait(self) -> int:
        """Return the exit status; 128 plus the signal number if a signal ended it."""

    async def end(self) -> None:
        """Kill the command and all its processes, and wait for their end; safe to call twice.

        Raises:
            CommandInterrupted: That is not possible now, and the command had not ended.
        """


class Isolation(Protocol):
    """A method of isolating commands."""

    async def check(self) -> None:
        """Run a trivial command.

        Raises:
            IsolationMissing: The isolation does not work on this machine.
        """

    async def start(self, command: Command) -> Running:
        """Start a command.

        Raises:
            CommandNotStarted: The command could not be started.
            CommandInterrupted: It is not known whether it was started.
        """

    async def sweep(self) -> None:
        """Remove what runners that were killed left behind; called every minute."""
