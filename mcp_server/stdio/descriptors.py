"""The process's stdin and stdout, taken for the protocol before anything else can write to them."""

from __future__ import annotations

import fcntl
import os
import sys
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class StdioDescriptors:
    """The descriptors that the protocol alone reads and writes."""

    read_fd: int
    write_fd: int


@cache
def take_over_stdio() -> StdioDescriptors:
    """Take stdin and stdout: from now on `print` and children write to stderr and read nothing.

    manage.py calls it before Django is loaded, so that no library's greeting reaches the host.
    Calling it again returns the same wire.
    """
    stdio = StdioDescriptors(_moved(0), _moved(1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # the host closed stderr
        os.dup2(nothing, 1)
    os.close(nothing)
    sys.stdout = sys.stderr or sys.stdout  # at once, not when a buffer is full
    return stdio


def _moved(fd: int) -> int:
    """Return a copy of the descriptor beyond the standard ones that children do not inherit."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
