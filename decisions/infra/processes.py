"""Naming a process so that another one on the same machine can tell for sure that it is gone."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")


def process_identity() -> str:
    """Return the mark of this process: machine boot, pid namespace, pid, start time."""
    return _mark(os.getpid()) or f"unknown::{os.getpid()}:"


def has_ended(mark: str) -> bool:
    """Tell whether the process of this mark certainly has ended; False where this machine cannot
    know.
    """
    boot, namespace, pid, _ = mark.split(":", 3)
    if not pid.isdigit() or [boot, namespace] != (_mark(os.getpid()) or ":::").split(":")[:2]:
        return False
    return _mark(int(pid)) != mark


def _mark(pid: int) -> str | None:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        namespace = (_PROC / "self/ns/pid").readlink().name.strip("pid:[]")
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    if fields[0] == "Z":  # dead, only not yet buried by its parent
        return None
    return f"{boot}:{namespace}:{pid}:{fields[19]}"
