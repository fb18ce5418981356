"""What the supervisor says of the stack, in CONTINUITY_HOME/stack.json, and how others read it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from runs.installation.home.locks import is_held
from runs.installation.home.paths import HomePaths, home_paths


@dataclass(frozen=True)
class ServiceInfo:
    """One part as `manage.py status` shows it."""

    name: str
    pid: int | None
    where: str
    state: str
    restarts: int = 0


@dataclass(frozen=True)
class StackInfo:
    """A stack of one home.

    `state` is starting, ready, stopping or stopped; stopped is left behind only by a stop that was
    asked for, so that those attached to it know not to start it anew. `model` is which model its
    agents have, "" none; None: it is older than the word.
    """

    state: str
    background: bool
    pid: int
    birth: str
    url: str
    started_at: float
    model: str | None = None
    parts: list[ServiceInfo] = field(default_factory=list)

    @property
    def mode(self) -> str:
        """Return the word for people."""
        return "background" if self.background else "foreground"


def write_state(at: HomePaths, info: StackInfo) -> None:
    """Replace the state file at once: a reader sees the old or the new, never a part."""
    fd, draft = tempfile.mkstemp(dir=at.home, prefix=".stack-")
    try:
        with os.fdopen(fd, "w") as file:
            json.dump(asdict(info), file)
        Path(draft).replace(at.state)
    except OSError:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise


def stack_info(at: HomePaths | None = None) -> StackInfo | None:
    """Return what the last supervisor said; None when none did, or none lived to its end."""
    try:
        stored: dict[str, Any] = json.loads((at or home_paths()).state.read_text())
        parts = [ServiceInfo(**part) for part in stored.pop("parts")]
        known = {one.name for one in fields(StackInfo)}
        return StackInfo(parts=parts, **{key: stored[key] for key in known & stored.keys()})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_up(at: HomePaths | None = None) -> bool:
    """Tell whether a stack lives on this home: starting, ready or stopping."""
    return is_held((at or home_paths()).stack_lock)


def live_info(at: HomePaths | None = None) -> StackInfo | None:
    """Return the stack that answers now; None when there is none, or it is only coming or going."""
    at = at or home_paths()
    info = stack_info(at)
    if info is None or info.state != "ready" or birth(info.pid) != info.birth:
        return None
    return info if is_up(at) else None


def birth(pid: int) -> str:
    """Return what tells a process from a later one with the same id: its start time since boot.

    Where the system does not tell, "alive"; for a process that is gone, "".
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
        return "alive" if _exists(pid) else ""
    after_name = stat.rpartition(")")[2].split()
    return "" if after_name[0] in "ZX" else after_name[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
