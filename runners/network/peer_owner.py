"""Whose process is at the other end of a connection on this machine, where the system tells."""

from __future__ import annotations

import os
import sys
from pathlib import Path

TABLE = Path("/proc/net/tcp")
_OWNER_COLUMN = 7
Endpoint = tuple[str, int]


def is_from_another_user(client: Endpoint, server: Endpoint) -> bool:
    """Say whether an IPv4 connection that `server` accepted is known to come from another user.

    Linux alone tells; where nothing is known, the answer is False.
    """
    try:
        table = TABLE.read_text()
    except OSError:
        return False
    theirs, ours = f"{_written(client)} {_written(server)} ", f"{_written(server)} "
    if ours + _written(client) not in table:
        return False  # a table that does not have our own end says nothing about the other
    line = next((line for line in table.splitlines() if theirs in line), None)
    return line is None or int(line.split()[_OWNER_COLUMN]) != os.geteuid()


def _written(endpoint: Endpoint) -> str:
    """Return an endpoint as the kernel writes it: the address in the machine's byte order."""
    host, port = endpoint
    number = int.from_bytes(bytes(map(int, host.split("."))), sys.byteorder)
    return f"{number:08X}:{port:04X}"
