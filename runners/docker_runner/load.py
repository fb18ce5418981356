"""The load of the runner's machine, reported by GET /health."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

_MEMORY = Path("/proc/meminfo")


def usage(running_calls: int, max_calls: int) -> dict[str, Any]:
    """Return CPU count and load, memory in bytes (null if unknown), and calls in flight."""
    memory = _memory()
    return {
        "cpu": {"count": os.cpu_count(), "load1m": round(os.getloadavg()[0], 2)},
        "memory": {
            "totalBytes": memory.get("MemTotal"),
            "availableBytes": memory.get("MemAvailable"),
        },
        "runningCalls": running_calls,
        "maxCalls": max_calls,
    }


def _memory() -> dict[str, int]:
    found = {}
    with contextlib.suppress(OSError, ValueError):
        for line in _MEMORY.read_text().splitlines():
            name, _, value = line.partition(":")
            found[name] = int(value.split()[0]) * 1024
    return found
