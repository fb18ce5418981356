"""Measure the load of the processors: of the container's quota, else of the machine."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

SAMPLE_SECONDS = 0.5
CGROUP = Path("/sys/fs/cgroup")
STAT = Path("/proc/stat")

CpuTime = tuple[float, float]  # used, available


class CpuLoad:
    """The share of the processors in use between samples at least `SAMPLE_SECONDS` apart."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = time.monotonic()
        self._last = cpu_seconds()
        self._busy: float | None = None

    def busy(self) -> float | None:
        """Return the share in use in the last sample, 0 to 1; None before the first sample."""
        with self._lock:
            now = time.monotonic()
            if self._last is None or now - self._at < SAMPLE_SECONDS:
                return self._busy
            cpu_time = cpu_seconds()
            if cpu_time is None:
                return None
            used, available = cpu_time[0] - self._last[0], cpu_time[1] - self._last[1]
            if available > 0:
                self._busy = min(1.0, max(0.0, used / available))
            self._at, self._last = now, cpu_time
            return self._busy


def cpu_seconds() -> CpuTime | None:
    """Return the CPU time used and available so far; None if unknown (not Linux)."""
    return _of_quota() or _of_machine()


def usable_cores() -> int:
    """Return the cores that this process may use: its affinity, at most the container's quota."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _quota()
    return max(1, cores if quota is None else min(cores, round(quota)))


def _quota() -> float | None:
    """Return the container's quota in cores; None if there is no quota."""
    try:
        quota, period = (CGROUP / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def _of_quota() -> CpuTime | None:
    cores = _quota()
    if cores is None:
        return None
    try:
        lines = (CGROUP / "cpu.stat").read_text().splitlines()
        usage = next(line for line in lines if line.startswith("usage_usec"))
    except (OSError, StopIteration):
        return None
    return int(usage.split()[1]) / 1e6, time.monotonic() * cores


def _of_machine() -> CpuTime | None:
    """Read the first line of /proc/stat: user nice system idle iowait irq softirq steal."""
    try:
        with STAT.open() as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    if len(ticks) < 5:
        return None
    total = sum(ticks)
    return float(total - ticks[3] - ticks[4]), float(total)
