"""Process identities: another process can tell that one has ended, even if its pid is reused. And
signs of life of workers and schedulers in files, which a probe reads without the database.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path

from django.conf import settings

_PROC = Path("/proc")


def mark_alive(role: str) -> None:
    """Record that a process of this kind works, for `seconds_since_alive`; never fails."""
    with contextlib.suppress(OSError):
        _alive_file(role).write_text(f"{time.monotonic()}")


def seconds_since_alive(role: str) -> float | None:
    """Return how long ago a process of this kind on this host worked; None if it never did."""
    try:
        return time.monotonic() - float(_alive_file(role).read_text())
    except (OSError, ValueError):
        return None


def _alive_file(role: str) -> Path:
    return Path(settings.CONTINUITY_HOME) / f"alive-{role}-{socket.gethostname()}"


def process_identity() -> str:
    """Return the identity of this process: boot id, pid namespace, pid and start time."""
    return _identity(os.getpid()) or f"unknown::{os.getpid()}:"


def has_ended(identity: str) -> bool:
    """Return whether a process has ended; False for other machines, boots, pid namespaces."""
    return _is_here(identity) and not runs_here(identity)


def runs_here(identity: str) -> bool:
    """Return whether a process runs on this machine, in this pid namespace."""
    return _is_here(identity) and _identity(int(identity.split(":")[2])) == identity


def _is_here(identity: str) -> bool:
    own = (_identity(os.getpid()) or ":::").split(":")
    parts = identity.split(":")
    return len(parts) == len(own) and parts[:2] == own[:2] and parts[2].isdigit()


def _identity(pid: int) -> str | None:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        namespace = (_PROC / "self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        return None
    started = start_time(pid)
    return None if started is None else f"{boot}:{namespace}:{pid}:{started}"


def start_time(pid: int) -> str | None:
    """Return when a process started, in clock ticks since boot, which a later process with the same
    id differs in; None if the process has ended, or if the system does not report it.
    """
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # Z is a zombie: ended, but not yet waited for by its parent.
    return None if fields[0] in "ZX" else fields[19]
