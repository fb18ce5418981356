"""The supervisor: starts the services, restarts and stops them. No process of theirs outlives it:
see watcher.py and process_group.py.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from runs.operations.home.errors import ServiceFailed
from runs.operations.home.paths import HomePaths
from runs.operations.home.state import ServiceInfo, StackInfo, birth, write_state
from runs.operations.supervision.beginning import Start
from runs.operations.supervision.logs import last_lines
from runs.operations.supervision.services import Service, ServiceProcess
from runs.operations.supervision.watcher import STOPPED_LAST
from runs.operations.supervision.watcher_process import WatcherProcess

START_TIMEOUT_S = 60.0
DRAIN_S = 6.0
_ROUND_S = 0.2

Report = Callable[[str], None]


class Supervisor:
    """The services of one home, from start to stop.

    Call `start` and `stop` in one thread. Between them a thread of the supervisor monitors the
    services, and sets `ended` when the stack should stop by itself.

    Args:
        report: prints a line.
        should_stop: the idle rule; calls its argument when it returns True.
    """

    def __init__(
        self,
        paths: HomePaths,
        services: Sequence[Service],
        *,
        start: Start,
        url: str,
        background: bool,
        report: Report,
        model: str | None = None,
        should_stop: Callable[[Callable[[], None]], bool] | None = None,
        health_check_s: float = 5.0,
    ) -> None:
        self._paths = paths
        self.url = url
        self._background, self._model = background, model
        self._report = report
        self._should_stop = should_stop or (lambda on_stop: False)
        self._health_check_s = health_check_s
        self._mark = uuid.uuid4().hex
        self._begun = start
        # A short path: Chromium creates Unix sockets 74 bytes below it, and 107 bytes are allowed.
        self._temp_folder = Path(tempfile.mkdtemp(prefix="cty-"))
        self._processes = [
            ServiceProcess(service, paths, mark=self._mark, temp_folder=self._temp_folder)
            for service in services
        ]
        self._state = "starting"
        self._stopping = threading.Event()
        self._kill_now = threading.Event()
        self.ended = threading.Event()
        self.is_idle = False
        self._thread = threading.Thread(target=self._monitor, name="supervisor", daemon=True)
        self._watcher: WatcherProcess | None = None

    def start(self) -> None:
        """Start redis and then all other services; return when all are ready.

        Raises:
            ServiceFailed: A service ended or was not ready in time; the message has the end of its
                log. Call `stop`.
        """
        self._write_state("starting")
        self._watcher = WatcherProcess(
            self._paths, mark=self._mark, temp_folder=self._temp_folder, lock_fd=self._begun.lock_fd
        )
        first = [one for one in self._processes if one.name == STOPPED_LAST]
        for group in (first, [one for one in self._processes if one not in first]):
            for one in group:
                self._start(one)
            self._await_ready(group)
        self._write_state("running")
        self._thread.start()

    def stop(self, *, final: bool) -> None:
        """Stop all services in order, within 8 s; `final` tells attached terminals to end as well.

        May be called after a failed start, and twice.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._watcher is not None:
            self._write_state("stopping")
            self._stop([one for one in self._processes if one.name != STOPPED_LAST], DRAIN_S)
            self._stop([one for one in self._processes if one.name == STOPPED_LAST], 1.5)
            self._watcher.stop()
            self._watcher = None
        shutil.rmtree(self._temp_folder, ignore_errors=True)
        if final:
            self._write_state("stopped")
        else:
            self._paths.state.unlink(missing_ok=True)

    def kill_now(self) -> None:
        """Make a running `stop` kill what has not ended yet. Safe in a signal handler."""
        self._kill_now.set()

    def _await_ready(self, processes: Sequence[ServiceProcess]) -> None:
        waiting = list(processes)
        while waiting:
            for one in list(waiting):
                if one.became_ready():
                    waiting.remove(one)
                    self._report(one.ready_line())
                elif (why := one.start_failure(START_TIMEOUT_S)) and not self._repair(one, why):
                    raise ServiceFailed(self._with_log(one, why))
            time.sleep(0.02)

    def _repair(self, one: ServiceProcess, why: str) -> bool:
        """Let a service that failed to start repair what it can, once, and start it again."""
        repaired = one.repair() if one.restarts == 0 else None
        if repaired is None:
            return False
        self._report(f"  {one.name:<10} {why}; {repaired}")
        self._kill(one)
        one.restarts += 1
        self._start(one)
        return True

    def _with_log(self, one: ServiceProcess, why: str) -> str:
        log = self._paths.log(one.name)
        end = "".join(f"\n    {line}" for line in last_lines(log)) or " (empty)"
        return f"The {one.name} service did not start: it {why}. The end of {log}:{end}"

    def _monitor(self) -> None:
        check_at = time.monotonic() + self._health_check_s
        try:
            while not self._stopping.wait(_ROUND_S):
                if self._watcher and self._watcher.restart_killed():
                    self._report("  watcher    was killed; started again")
                    self._write_state(self._state)
                for one in self._processes:
                    self._restart_ended(one)
                if time.monotonic() >= check_at:
                    check_at = time.monotonic() + self._health_check_s
                    self._check_health()
                    self.is_idle = self._should_stop(lambda: self._write_state("stopping"))
                    if self.is_idle:
                        return
        finally:
            self.ended.set()

    def _restart_ended(self, one: ServiceProcess) -> None:
        if one.is_restart_due():
            self._start(one)
        elif one.has_ended() or one.is_overdue(START_TIMEOUT_S):
            why = one.describe_end()
            self._kill(one)
            delay_s = one.schedule_restart()
            self._report(f"  {one.name:<10} {why}; starts again in {delay_s:.1f} s")
            self._write_state(self._state)
        elif one.became_ready():
            self._report(f"{one.ready_line()}  (again)")
            self._write_state(self._state)

    def _check_health(self) -> None:
        for one in self._processes:
            why = one.unhealthy_reason()
            if why:
                self._report(f"  {one.name:<10} {why}; it is being restarted")
                one.terminate(within_s=DRAIN_S)

    def _start(self, one: ServiceProcess) -> None:
        if self._watcher is None:
            return
        try:
            one.start(self._watcher)
        except OSError as exc:
            if self._state == "starting":
                raise ServiceFailed(f"The {one.name} service cannot be started: {exc}.") from exc
            self._report(f"  {one.name:<10} cannot be started ({exc}); it is tried again")
            one.schedule_restart()

    def _kill(self, one: ServiceProcess) -> None:
        if self._watcher:
            one.kill(self._watcher)

    def _stop(self, processes: Sequence[ServiceProcess], patience_s: float) -> None:
        for one in processes:
            one.terminate(within_s=patience_s)
        deadline = time.monotonic() + patience_s
        while any(one.is_running() for one in processes) and time.monotonic() < deadline:
            if self._kill_now.wait(0.03):
                break
        for one in processes:
            self._kill(one)

    def _write_state(self, state: str) -> None:
        """Write stack.json. Errors are ignored: a full disk must not end a running stack."""
        self._state = state
        services = [one.info() for one in self._processes]
        if self._watcher:
            where = "stops all if this one is killed"
            services.append(ServiceInfo("watcher", self._watcher.pid, where, "running"))
        info = StackInfo(
            state=state,
            background=self._background,
            pid=os.getpid(),
            birth=birth(os.getpid()),
            url=self.url,
            started_at=self._begun.began_at,
            model=self._model,
            services=services,
        )
        with contextlib.suppress(OSError):
            write_state(self._paths, info)
