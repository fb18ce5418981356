"""Find out which user owns the process at the other end of a local connection (Linux only)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

TABLE = Path("/proc/net/tcp")
_OWNER_COLUMN = 7
Endpoint = tuple[str, int]


def is_from_another_user(client: Endpoint, server: Endpoint) -> bool:
    """Return whether an IPv4 connection that `server` accepted comes from another user's process.

    False if the system does not provide the owner (anything but Linux).
    """
    try:
        table = TABLE.read_text()
    except OSError:
        return False
    theirs, ours = (
        f"{_as_kernel_writes(client)} {_as_kernel_writes(server)} ",
        f"{_as_kernel_writes(server)} ",
    )
    if ours + _as_kernel_writes(client) not in table:
        return False  # without our own end, the table is incomplete and proves nothing
    line = next((line for line in table.splitlines() if theirs in line), None)
    return line is None or int(line.split()[_OWNER_COLUMN]) != os.geteuid()


def _as_kernel_writes(endpoint: Endpoint) -> str:
    """Return an endpoint as /proc/net/tcp has it: the address in the machine's byte order."""
    host, port = endpoint
    number = int.from_bytes(bytes(map(int, host.split("."))), sys.byteorder)
    return f"{number:08X}:{port:04X}"
