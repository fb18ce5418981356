"""The process's stdin and stdout, reserved for the protocol before other code can write to them."""

from __future__ import annotations

import fcntl
import os
import sys
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class StdioDescriptors:
    """The descriptors that only the protocol reads and writes."""

    read_fd: int
    write_fd: int


@cache
def take_over_stdio() -> StdioDescriptors:
    """Reserve stdin and stdout for the protocol, and return their new descriptors.

    From then on `print` and child processes write to stderr and read end of file. manage.py calls
    this before it imports Django, so that no library's output reaches the host. Calling it again
    returns the same descriptors.
    """
    stdio = StdioDescriptors(_moved(0), _moved(1))
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # the host closed stderr
        os.dup2(devnull, 1)
    os.close(devnull)
    sys.stdout = sys.stderr or sys.stdout  # stderr is written at once, not when a buffer is full
    return stdio


def _moved(fd: int) -> int:
    """Return a duplicate of the descriptor above stderr's, which children do not inherit."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
