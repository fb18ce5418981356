"""The services' log files: rotated when a service starts, quoted when it fails."""

from __future__ import annotations

import os
from pathlib import Path

ROTATE_BYTES = 10 * 1024 * 1024
_TAIL_BYTES = 16 * 1024
_TAIL_LINES = 12


def open_log(path: Path) -> int:
    """Open a service's log for appending; return its descriptor. Above ROTATE_BYTES the old log is
    renamed to `.1` first.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        if path.stat().st_size > ROTATE_BYTES:
            path.replace(path.with_name(path.name + ".1"))
    except FileNotFoundError:
        pass
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def last_lines(path: Path) -> list[str]:
    """Return the end of a log, at most 12 lines of at most 300 characters."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line[:300] for line in text.splitlines()[-_TAIL_LINES:]]
