"""A service of the stack: how it is started, and its process through starts and restarts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runs.operations.home.paths import HomePaths
from runs.operations.home.state import ServiceInfo
from runs.operations.supervision.logs import open_log
from runs.operations.supervision.process_group import ProcessGroup, describe_exit
from runs.operations.supervision.watcher_process import WatcherProcess

_BACKOFF_MAX_S = 30.0
_STABLE_AFTER_S = 60.0
_WIDTH = 48


def _nothing_to_repair() -> str | None:
    return None


def _always_healthy(pid: int) -> str | None:
    return None


@dataclass(frozen=True)
class Service:
    """A program of the stack.

    Attributes:
        env: the variables that it needs; the stack's mark and temporary folder are added.
        where: its address or purpose, as the status shows it.
        is_ready: called with the process id until it returns True.
        unhealthy_reason: called every few seconds after that; returns what is wrong, or None.
        repair: called once after a failed start; returns what it repaired, or None.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    where: str
    is_ready: Callable[[int], bool]
    unhealthy_reason: Callable[[int], str | None] = _always_healthy
    repair: Callable[[], str | None] = _nothing_to_repair
    pass_fds: tuple[int, ...] = ()


class ServiceProcess:
    """The process of a service, through its starts, stops and restarts."""

    def __init__(
        self,
        service: Service,
        paths: HomePaths,
        *,
        mark: str,
        temp_folder: Path,
    ) -> None:
        self._service = service
        self._temp_folder = temp_folder / service.name
        self._paths = paths
        self._mark = f"{mark}/{service.name}"
        self._group: ProcessGroup | None = None
        self._started_at = 0.0
        self._ready_at: float | None = None
        self._end_by: float | None = None
        self._restart_at: float | None = None
        self._failures = 0
        self.restarts = 0
        self.repair = service.repair

    @property
    def name(self) -> str:
        """The service's name."""
        return self._service.name

    def start(self, watcher: WatcherProcess) -> None:
        """Start the process and its guard, and add them to the watcher."""
        log_fd = open_log(self._paths.log(self.name))
        try:
            self._group = ProcessGroup(
                self._service.argv,
                env=self._service.env,
                mark=self._mark,
                log_fd=log_fd,
                pass_fds=self._service.pass_fds,
                temp_folder=self._temp_folder,
            )
        finally:
            os.close(log_fd)
        self._started_at = time.monotonic()
        self._ready_at = self._end_by = self._restart_at = None
        watcher.add(self.name, self._group)

    def kill(self, watcher: WatcherProcess) -> None:
        """Kill what is left of the process group."""
        watcher.remove(self.name)
        if self._group is not None:
            self._group.kill()
        self._group = self._ready_at = self._end_by = None

    def is_running(self) -> bool:
        """Return whether the process runs."""
        return self._group is not None and self._group.poll() is None

    def has_ended(self) -> bool:
        """Return whether the process was started and has ended since."""
        return self._group is not None and self._group.poll() is not None

    def became_ready(self) -> bool:
        """Check whether the service is ready; True only the first time."""
        if self._ready_at is not None or not self.is_running() or self._group is None:
            return False
        if not self._service.is_ready(self._group.pid):
            return False
        self._ready_at = time.monotonic()
        return True

    def start_failure(self, timeout_s: float) -> str | None:
        """Return why the start failed; None while it may still succeed."""
        has_timed_out = time.monotonic() - self._started_at > timeout_s
        if self._group is None or self.has_ended() or has_timed_out:
            return self.describe_end()
        return None

    def is_overdue(self, start_timeout_s: float) -> bool:
        """Return whether it should have become ready, or have ended, by now."""
        now = time.monotonic()
        if self._end_by is not None and now > self._end_by:
            return True
        is_starting = self.is_running() and self._ready_at is None
        return is_starting and now - self._started_at > start_timeout_s

    def unhealthy_reason(self) -> str | None:
        """Return what is wrong with a ready service. Once stable, its failures are forgotten."""
        if self._group is None or self._ready_at is None or self._end_by is not None:
            return None
        reason = self._service.unhealthy_reason(self._group.pid)
        if reason is None and time.monotonic() - self._ready_at > _STABLE_AFTER_S:
            self._failures = 0
        return reason

    def terminate(self, *, within_s: float) -> None:
        """Send SIGTERM; after `within_s` the process is overdue."""
        if self._group is not None:
            self._end_by = time.monotonic() + within_s
            self._group.terminate()

    def schedule_restart(self) -> float:
        """Schedule the next start; return the delay, which doubles with each failure in a row."""
        self._failures += 1
        self.restarts += 1
        delay_s = min(_BACKOFF_MAX_S, 0.25 * float(2**self._failures))
        self._restart_at = time.monotonic() + delay_s
        return delay_s

    def is_restart_due(self) -> bool:
        """Return whether the scheduled start is due."""
        return self._restart_at is not None and time.monotonic() >= self._restart_at

    def describe_end(self) -> str:
        """Return as text how the process ended, or that it did not become ready."""
        status = self._group.poll() if self._group else None
        if status is not None:
            return f"ended ({describe_exit(status)})"
        if self._end_by is not None:
            return "did not end on SIGTERM"
        return f"was not ready within {time.monotonic() - self._started_at:.0f} s"

    def ready_line(self) -> str:
        """Return the line for the terminal: name, where, and how long the start took."""
        took_s = (self._ready_at or self._started_at) - self._started_at
        where = self._service.where
        if len(where) > _WIDTH:
            where = f"…{where[1 - _WIDTH :]}"
        return f"  {self.name:<10} {where:<{_WIDTH}} {took_s:.1f} s"

    def info(self) -> ServiceInfo:
        """Return what `manage.py status` shows."""
        state = "running" if self._ready_at else "starting"
        if self._restart_at:
            state = "waiting to restart"
        if self._end_by:
            state = "stopping"
        pid = self._group.pid if self._group else None
        return ServiceInfo(self.name, pid, self._service.where, state, self.restarts)
