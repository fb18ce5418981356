"""What the stack consists of: how a part is started, and how one that runs is followed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runs.installation.home.paths import HomePaths
from runs.installation.home.state import ServiceInfo
from runs.installation.supervision.logs import open_log
from runs.installation.supervision.process_group import ProcessGroup, describe_exit
from runs.installation.supervision.watcher_process import WatcherProcess

_BACK_OFF_MAX_S = 30.0
_WELL_AFTER_S = 60.0
_WIDTH = 48


def _nothing_to_mend() -> str | None:
    return None


def _always_well(pid: int) -> str | None:
    return None


@dataclass(frozen=True)
class Service:
    """A program of the stack.

    `is_ready` is asked, with its process id, until it says yes; `ailment` every few seconds after
    that, and answers what is wrong, or None. `mend` may put something right after a failed start,
    and says what it did.
    """

    name: str
    argv: tuple[str, ...]
    where: str
    is_ready: Callable[[int], bool]
    unhealthy_reason: Callable[[int], str | None] = _always_well
    mend: Callable[[], str | None] = _nothing_to_mend
    pass_fds: tuple[int, ...] = ()


class ServiceProcess:
    """A part through its starts, ends and restarts."""

    def __init__(
        self, part: Service, at: HomePaths, *, env: Mapping[str, str], mark: str, scratch: Path
    ) -> None:
        self._part = part
        self._scratch = scratch / part.name
        self._at = at
        self._env = env
        self._mark = f"{mark}/{part.name}"
        self._group: ProcessGroup | None = None
        self._started = 0.0
        self._ready: float | None = None
        self._end_by: float | None = None
        self._restart_at: float | None = None
        self._failures = 0
        self.restarts = 0
        self.mend = part.mend

    @property
    def name(self) -> str:
        """The part's name."""
        return self._part.name

    def start(self, watch: WatcherProcess) -> None:
        """Start the process, its leash, and the watch over both."""
        log_fd = open_log(self._at.log(self.name))
        try:
            self._group = ProcessGroup(
                self._part.argv,
                env=self._env,
                mark=self._mark,
                log_fd=log_fd,
                pass_fds=self._part.pass_fds,
                scratch=self._scratch,
            )
        finally:
            os.close(log_fd)
        self._started = time.monotonic()
        self._ready = self._end_by = self._restart_at = None
        watch.adopt(self.name, self._group)

    def clear(self, watch: WatcherProcess) -> None:
        """Kill what is left of it."""
        watch.release(self.name)
        if self._group is not None:
            self._group.clear()
        self._group = self._ready = self._end_by = None

    def is_running(self) -> bool:
        """Tell whether the process lives."""
        return self._group is not None and self._group.poll() is None

    def has_ended(self) -> bool:
        """Tell whether the process was started and has ended since."""
        return self._group is not None and self._group.poll() is not None

    def became_ready(self) -> bool:
        """Ask the part whether it is ready; True once, the first time it says yes."""
        if self._ready is not None or not self.is_running() or self._group is None:
            return False
        if not self._part.is_ready(self._group.pid):
            return False
        self._ready = time.monotonic()
        return True

    def start_failure(self, timeout_s: float) -> str | None:
        """Return why a start failed, None while it may still succeed."""
        if self._group is None or self.has_ended() or time.monotonic() - self._started > timeout_s:
            return self.end_words()
        return None

    def is_overdue(self, start_timeout_s: float) -> bool:
        """Tell whether it should have become ready, or have ended, by now."""
        now = time.monotonic()
        if self._end_by is not None and now > self._end_by:
            return True
        return self.is_running() and self._ready is None and now - self._started > start_timeout_s

    def unhealthy_reason(self) -> str | None:
        """Return what is wrong with a part that is ready; one that is well starts afresh."""
        if self._group is None or self._ready is None or self._end_by is not None:
            return None
        why = self._part.unhealthy_reason(self._group.pid)
        if why is None and time.monotonic() - self._ready > _WELL_AFTER_S:
            self._failures = 0
        return why

    def ask_to_end(self, *, within_s: float) -> None:
        """Send SIGTERM; it is overdue after the given time."""
        if self._group is not None:
            self._end_by = time.monotonic() + within_s
            self._group.ask_to_end()

    def schedule_restart(self) -> float:
        """Plan the next start; return the pause before it, doubled with every failure in a row."""
        self._failures += 1
        self.restarts += 1
        pause = min(_BACK_OFF_MAX_S, 0.25 * float(2**self._failures))
        self._restart_at = time.monotonic() + pause
        return pause

    def is_due(self) -> bool:
        """Tell whether the planned start is due."""
        return self._restart_at is not None and time.monotonic() >= self._restart_at

    def end_words(self) -> str:
        """Return in words how it ended, or that it did not get ready."""
        status = self._group.poll() if self._group else None
        if status is not None:
            return f"ended ({describe_exit(status)})"
        if self._end_by is not None:
            return "did not end when asked"
        return f"gave no sign of life for {time.monotonic() - self._started:.0f} s"

    def ready_line(self) -> str:
        """Return what it is, where, and how long it took, for a person."""
        took = (self._ready or self._started) - self._started
        where = self._part.where
        if len(where) > _WIDTH:
            where = f"…{where[1 - _WIDTH :]}"
        return f"  {self.name:<10} {where:<{_WIDTH}} {took:.1f} s"

    def info(self) -> ServiceInfo:
        """Return what `manage.py status` shows."""
        state = "waiting to restart" if self._restart_at else "ready" if self._ready else "starting"
        if self._end_by:
            state = "stopping"
        pid = self._group.pid if self._group else None
        return ServiceInfo(self.name, pid, self._part.where, state, self.restarts)
