"""What every isolation is: it starts command lines in the runner's folder and ends them whole."""

from __future__ import annotations

import math
import posixpath
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

StreamName = Literal["stdout", "stderr"]
Piece = tuple[StreamName, bytes]
IsolationName = Literal["bubblewrap", "docker", "process"]
INSIDE = "/workspace"  # what the folder is called where the command cannot see its real place
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What one command may use of the machine.

    Attributes:
        cpus: processors that it may keep busy.
        processes: how many there may be at once.
        file_bytes: the largest file that it may write.
        scratch_bytes: of /tmp and of /dev/shm, each.
    """

    memory_bytes: int = 4096 * MIB
    cpus: float = 2.0
    processes: int = 256
    file_bytes: int = 1024 * MIB
    scratch_bytes: int = 256 * MIB

    def cpu_seconds(self, timeout_s: float) -> int:
        """Return the processor time that is never used up before the deadline, unless by more
        processors than are allowed.
        """
        return math.ceil(timeout_s * self.cpus) + 1


@dataclass(frozen=True, slots=True)
class Place:
    """Where commands run.

    Attributes:
        root: the folder, absolute and without links; the one place that they may change.
        allow_net: they may use the network.
        closed: folders that no command may see, whatever else it sees (CONTINUITY_HOME).
    """

    root: Path
    allow_net: bool = False
    closed: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Command:
    """A line for the shell.

    Attributes:
        folder: where it runs: a path below the root, `.` for the root itself.
        env: variables that the caller adds.
    """

    line: str
    folder: str
    env: Mapping[str, str]
    timeout_s: float


def inside(folder: str) -> str:
    """Return what a path below the root is called where the root is called INSIDE."""
    return posixpath.normpath(f"{INSIDE}/{folder}")


class Running(Protocol):
    """A command that was started; whoever started it calls `end`."""

    def pieces(self) -> AsyncIterator[Piece]:
        """Yield what it prints, as it comes, until both its streams are at their end."""

    async def wait(self) -> int:
        """Return the exit status; 128 and the signal's number where one ended it."""

    async def end(self) -> None:
        """Kill it and all that it started, and wait for that; nothing when it is over."""


class Isolation(Protocol):
    """A way to keep commands apart."""

    async def check(self) -> None:
        """Try it once.

        Raises:
            IsolationMissing: It does not work on this machine; why, in one sentence.
        """

    async def start(self, command: Command) -> Running:
        """Start a command.

        Raises:
            CommandNotStarted: It could not be.
        """
