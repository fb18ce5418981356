"""`manage.py down`: stop the stack of this home."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from django.core.management.base import BaseCommand

from runs.installation.home.paths import HomePaths, home_paths
from runs.installation.home.state import StackInfo, birth, is_up, stack_info

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
        """Stop the supervisor with SIGTERM, then SIGKILL. Exit 0 if nothing is left running."""
        paths = home_paths()
        if not is_up(paths):
            self.stdout.write("Nothing is up.")
            return
        info = stack_info(paths)
        started_at = time.monotonic()
        if not _stop(paths, info):
            self.stderr.write(
                f"A process still holds {paths.stack_lock}; `manage.py status` shows the processes."
            )
            sys.exit(1)
        self.stdout.write(f"Stopped after {time.monotonic() - started_at:.1f} s.")


def _stop(paths: HomePaths, info: StackInfo | None) -> bool:
    """Signal the supervisor and wait; the watcher ends what a killed supervisor leaves."""
    started_at = time.monotonic()
    _signal(info, signal.SIGTERM)
    is_killed = False
    while is_up(paths):
        waited = time.monotonic() - started_at
        if waited > TIMEOUT_S:
            return False
        if waited > KILL_AFTER_S and not is_killed:
            is_killed = True
            _signal(stack_info(paths), signal.SIGKILL)
        time.sleep(0.05)
    return True


def _signal(info: StackInfo | None, number: int) -> None:
    if info is not None and birth(info.pid) == info.birth:
        os.kill(info.pid, number)
