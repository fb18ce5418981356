"""`manage.py down`: stop the stack of this home."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import Any

from django.core.management.base import BaseCommand

from runs.operations.home.paths import HomePaths, home_paths
from runs.operations.home.state import StackInfo, birth, is_up, stack_info

KILL_AFTER_S = 12.0
TIMEOUT_S = 25.0


class Command(BaseCommand):
    """Stops redis, web, worker and scheduler, in whichever terminal they were started."""

    help = (
        "Stop the stack of this home, wherever it was started, and wait until it has stopped."
        " Runs continue at the next start."
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Stop the stack with SIGTERM, then SIGKILL. Exit 0 if nothing of it is left running."""
        paths = home_paths()
        if not is_up(paths):
            self.stdout.write("Nothing is up.")
            return
        began = time.monotonic()
        stop = _Stop()
        if not stop.run(paths):
            self.stderr.write(
                f"A process still holds {paths.stack_lock}; `manage.py status` shows the processes."
            )
            sys.exit(1)
        self.stdout.write(f"Stopped after {time.monotonic() - began:.1f} s: {stop.what}.")


class _Stop:
    """Ends one stack, or the start of one.

    Attributes:
        what: what was ended, in words.
    """

    def __init__(self) -> None:
        self.what = "a stack that was stopping already"
        self._started_at: float | None = None
        self._signaled: set[int] = set()

    def run(self, paths: HomePaths) -> bool:
        """Signal every process that starts or supervises the stack until it has ended; False if it
        does not end. A stack that another command starts afterwards is left alone.
        """
        began = time.monotonic()
        is_killed = False
        while is_up(paths):
            waited = time.monotonic() - began
            info = stack_info(paths)
            if info is not None and birth(info.pid) != info.birth:
                info = None  # of an earlier stack, or of a killed supervisor: its watcher stops it
            if info is not None and self._is_other(info):
                return True
            if waited > TIMEOUT_S:
                return False
            if info is not None:
                self._terminate(info)
            if info is not None and waited > KILL_AFTER_S and not is_killed:
                is_killed = True
                _signal(info, signal.SIGKILL)
            time.sleep(0.05)
        return True

    def _is_other(self, info: StackInfo) -> bool:
        """Return whether this is another stack than the one that was up at first."""
        if self._started_at is None:
            self._started_at = info.started_at
        return info.started_at != self._started_at

    def _terminate(self, info: StackInfo) -> None:
        """Signal the process once. `up --background` hands its start over to the supervisor."""
        if info.pid in self._signaled or info.state == "stopping":
            return
        self._signaled.add(info.pid)
        _signal(info, signal.SIGTERM)
        names = ", ".join(service.name for service in info.services)
        start = f"a stack that was starting (process {info.pid})"
        self.what = (
            start if info.state == "starting" else f"supervisor (process {info.pid}), {names}"
        )


def _signal(info: StackInfo, number: int) -> None:
    """Signal the process that wrote stack.json, unless it has ended meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(info.pid, number)
