"""Start the parts, keep them alive, stop them; nothing outlives us (watch.py, groups.py)."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runs.installation.home.errors import ServiceFailed
from runs.installation.home.paths import HomePaths
from runs.installation.home.state import ServiceInfo, StackInfo, birth, write_state
from runs.installation.supervision.logs import last_lines
from runs.installation.supervision.services import Service, ServiceProcess
from runs.installation.supervision.watcher import LAST
from runs.installation.supervision.watcher_process import WatcherProcess

START_TIMEOUT_S = 60.0
DRAIN_S = 6.0
_ROUND_S = 0.2

Report = Callable[[str], None]


class Supervisor:
    """The parts of one home, from start to stop.

    `start` and `stop` belong to one thread; between them a thread of the supervisor's own watches
    the parts and sets `ended` when the stack is to stop by itself.
    """

    def __init__(
        self,
        at: HomePaths,
        parts: Sequence[Service],
        *,
        lock_fd: int,
        url: str,
        background: bool,
        report: Report,
        env: Mapping[str, str],
        model: str | None = None,
        should_stop: Callable[[Callable[[], None]], bool] | None = None,
        vitals_every_s: float = 5.0,
    ) -> None:
        self._at = at
        self.url = url
        self._background, self._model = background, model
        self._say = report
        self._is_over = should_stop or (lambda on_over: False)
        self._vitals_every_s = vitals_every_s
        self._mark = uuid.uuid4().hex
        self._lock_fd = lock_fd
        # Short, and made anew: Chromium puts Unix sockets 74 bytes deep into it, of 107 in all.
        self._scratch = Path(tempfile.mkdtemp(prefix="cty-"))
        self._running = [
            ServiceProcess(part, at, env=env, mark=self._mark, scratch=self._scratch) for part in parts
        ]
        self._state = "starting"
        self._started_at = time.time()
        self._stopping = threading.Event()
        self._hurry = threading.Event()
        self.ended = threading.Event()
        self.is_idle = False
        self._thread = threading.Thread(target=self._keep, name="supervisor", daemon=True)
        self._watch: WatcherProcess | None = None

    def start(self) -> None:
        """Start every part and return when all are ready; redis first, the others side by side.

        Raises:
            ServiceFailed: A part ended or stayed silent; its last lines are in the message. Call stop.
        """
        self._note("starting")
        self._watch = WatcherProcess(self._at, mark=self._mark, scratch=self._scratch, lock_fd=self._lock_fd)
        first = [one for one in self._running if one.name == LAST]
        for wave in (first, [one for one in self._running if one not in first]):
            for one in wave:
                self._begin(one)
            self._await_ready(wave)
        self._note("ready")
        self._thread.start()

    def stop(self, *, final: bool) -> None:
        """Stop every part in good order, within 8 s; `final` tells those attached to leave as well.

        Safe after a start that failed, and twice.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._watch is not None:
            self._note("stopping")
            self._end([one for one in self._running if one.name != LAST], DRAIN_S)
            self._end([one for one in self._running if one.name == LAST], 1.5)
            self._watch.farewell()
            self._watch = None
        shutil.rmtree(self._scratch, ignore_errors=True)
        if final:
            self._note("stopped")
        else:
            self._at.state.unlink(missing_ok=True)

    def hurry(self) -> None:
        """Let a stop that is under way kill what has not ended yet; safe in a signal handler."""
        self._hurry.set()

    def _await_ready(self, wave: Sequence[ServiceProcess]) -> None:
        waiting = list(wave)
        while waiting:
            for one in list(waiting):
                if one.became_ready():
                    waiting.remove(one)
                    self._say(one.ready_line())
                elif (why := one.start_failure(START_TIMEOUT_S)) and not self._mend(one, why):
                    raise ServiceFailed(self._with_log(one, why))
            time.sleep(0.02)

    def _mend(self, one: ServiceProcess, why: str) -> bool:
        """Let a part that failed to start put right what it can, once, and start it again."""
        done = one.mend() if one.restarts == 0 else None
        if done is None:
            return False
        self._say(f"  {one.name:<10} {why}; {done}")
        self._clear(one)
        one.restarts += 1
        self._begin(one)
        return True

    def _with_log(self, one: ServiceProcess, why: str) -> str:
        log = self._at.log(one.name)
        lines = "".join(f"\n    {line}" for line in last_lines(log))
        return f"The {one.name} part did not start: {why}. The end of {log}:{lines or ' (empty)'}"

    def _keep(self) -> None:
        vitals_at = time.monotonic() + self._vitals_every_s
        try:
            while not self._stopping.wait(_ROUND_S):
                if self._watch and self._watch.mend():
                    self._say("  watcher    was killed; started again")
                    self._note(self._state)
                for one in self._running:
                    self._look_after(one)
                if time.monotonic() >= vitals_at:
                    vitals_at = time.monotonic() + self._vitals_every_s
                    self._check_vitals()
                    self.is_idle = self._is_over(lambda: self._note("stopping"))
                    if self.is_idle:
                        return
        finally:
            self.ended.set()

    def _look_after(self, one: ServiceProcess) -> None:
        if one.is_due():
            self._begin(one)
        elif one.has_ended() or one.is_overdue(START_TIMEOUT_S):
            why = one.end_words()
            self._clear(one)
            pause = one.schedule_restart()
            self._say(f"  {one.name:<10} {why}; starts again in {pause:.1f} s")
            self._note(self._state)
        elif one.became_ready():
            self._say(f"{one.ready_line()}  (again)")
            self._note(self._state)

    def _check_vitals(self) -> None:
        for one in self._running:
            why = one.unhealthy_reason()
            if why:
                self._say(f"  {one.name:<10} {why}; it is being restarted")
                one.ask_to_end(within_s=DRAIN_S)

    def _begin(self, one: ServiceProcess) -> None:
        if self._watch is None:
            return
        try:
            one.start(self._watch)
        except OSError as exc:
            if self._state == "starting":
                raise ServiceFailed(f"The {one.name} part cannot be started: {exc}.") from exc
            self._say(f"  {one.name:<10} cannot be started ({exc}); tried again")
            one.schedule_restart()

    def _clear(self, one: ServiceProcess) -> None:
        if self._watch:
            one.clear(self._watch)

    def _end(self, some: Sequence[ServiceProcess], patience_s: float) -> None:
        for one in some:
            one.ask_to_end(within_s=patience_s)
        deadline = time.monotonic() + patience_s
        while any(one.is_running() for one in some) and time.monotonic() < deadline:
            if self._hurry.wait(0.03):
                break
        for one in some:
            self._clear(one)

    def _note(self, state: str) -> None:
        """Write stack.json; a full disk must not end a stack that runs."""
        self._state = state
        parts = [one.info() for one in self._running]
        if self._watch:
            parts.append(
                ServiceInfo("watcher", self._watch.pid, "stops all if this one is killed", "ready")
            )
        info = StackInfo(
            state=state,
            background=self._background,
            pid=os.getpid(),
            birth=birth(os.getpid()),
            url=self.url,
            started_at=self._started_at,
            model=self._model,
            parts=parts,
        )
        with contextlib.suppress(OSError):
            write_state(self._at, info)
