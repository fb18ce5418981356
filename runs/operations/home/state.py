"""The state of the stack in CONTINUITY_HOME/stack.json: written by the supervisor, read by all."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from decisions.foundation.infra.processes import start_time
from runs.operations.home.locks import is_held
from runs.operations.home.paths import HomePaths, home_paths

_SERVICES = "parts"  # the key in stack.json
_OLDER_WORD = ('"state": "ready"', '"state": "running"')  # of older versions


@dataclass(frozen=True)
class ServiceInfo:
    """One service as `manage.py status` shows it."""

    name: str
    pid: int | None
    where: str
    state: str
    restarts: int = 0


@dataclass(frozen=True)
class StackInfo:
    """The stack of one home.

    Attributes:
        state: starting, running, stopping or stopped. Only a stop by SIGTERM, as of
            `manage.py down`, leaves stopped behind: it tells attached terminals not to start the
            stack again.
        pid, birth: the supervisor's process id and start time, as from `birth`.
        model: the model that its agents use, "" for none; None: a version that did not record it.
    """

    state: str
    background: bool
    pid: int
    birth: str
    url: str
    started_at: float
    model: str | None = None
    services: list[ServiceInfo] = field(default_factory=list)

    @property
    def mode(self) -> str:
        """Return background or foreground."""
        return "background" if self.background else "foreground"


def write_state(paths: HomePaths, info: StackInfo) -> None:
    """Replace the state file atomically."""
    stored = asdict(info)
    stored[_SERVICES] = stored.pop("services")
    fd, draft = tempfile.mkstemp(dir=paths.home, prefix=".stack-")
    try:
        with os.fdopen(fd, "w") as file:
            json.dump(stored, file)
        Path(draft).replace(paths.state)
    except OSError:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise


def stack_info(paths: HomePaths | None = None) -> StackInfo | None:
    """Return the content of the state file; None if there is no valid one."""
    try:
        text = (paths or home_paths()).state.read_text().replace(*_OLDER_WORD)
        stored: dict[str, Any] = json.loads(text)
        services = [ServiceInfo(**service) for service in stored.pop(_SERVICES)]
        known = {one.name for one in fields(StackInfo)}
        return StackInfo(services=services, **{key: stored[key] for key in known & stored.keys()})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_up(paths: HomePaths | None = None) -> bool:
    """Return whether a stack of this home is starting, running or stopping."""
    return is_held((paths or home_paths()).stack_lock)


def live_info(paths: HomePaths | None = None) -> StackInfo | None:
    """Return the stack if it is running; None if there is none, or it is starting or stopping."""
    paths = paths or home_paths()
    info = stack_info(paths)
    if info is None or info.state != "running" or birth(info.pid) != info.birth:
        return None
    return info if is_up(paths) else None


def birth(pid: int) -> str:
    """Return a process's start time since boot, which a later process with the same id differs in.

    "alive" if the system does not report start times; "" if the process has ended.
    """
    started = start_time(pid)
    if started is None and not Path("/proc/self/stat").exists():
        return "alive" if _exists(pid) else ""
    return started or ""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
