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

GENTLY_S = 12.0
IN_ALL_S = 25.0


class Command(BaseCommand):
    """Stop redis, web, worker and scheduler, wherever they were started."""

    help = (
        "Stop the stack of this home, wherever it was started, and wait for it."
        " Runs go on at the next start."
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask the supervisor to end, end it when it does not; exit 0 when nothing is left."""
        paths = home_paths()
        if not is_up(paths):
            self.stdout.write("Nothing is up.")
            return
        info = stack_info(paths)
        began = time.monotonic()
        if not _stop(paths, info):
            self.stderr.write(
                f"Something still holds {paths.stack_lock}; `manage.py status` shows what."
            )
            sys.exit(1)
        self.stdout.write(f"Stopped after {time.monotonic() - began:.1f} s.")


def _stop(paths: HomePaths, info: StackInfo | None) -> bool:
    """Ask, then force, and wait: the watcher ends what a killed supervisor leaves."""
    began = time.monotonic()
    _signal(info, signal.SIGTERM)
    forced = False
    while is_up(paths):
        waited = time.monotonic() - began
        if waited > IN_ALL_S:
            return False
        if waited > GENTLY_S and not forced:
            forced = True
            _signal(stack_info(paths), signal.SIGKILL)
        time.sleep(0.05)
    return True


def _signal(info: StackInfo | None, number: int) -> None:
    if info is not None and birth(info.pid) == info.birth:
        os.kill(info.pid, number)
