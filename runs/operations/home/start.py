"""Use the running stack of a home, or start one in the background."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from django.conf import settings

from runs.operations.home.errors import StackError
from runs.operations.home.paths import home_paths
from runs.operations.home.state import StackInfo, live_info

_TIMEOUT_S = 90.0


def ensure_stack(timeout_s: float = _TIMEOUT_S) -> StackInfo:
    """Return the running stack of this home; start one in the background if there is none.

    Blocks until the stack is ready: milliseconds if it runs, seconds if it has to start. Hold a
    `membership` from before the call until the stack is no longer needed. Any number of processes
    may call it at once.

    Raises:
        StackError: The stack did not start in time; the message is that of `manage.py up`.
    """
    paths = home_paths()
    deadline = time.monotonic() + timeout_s
    info = live_info(paths)
    if info is not None:
        return info
    command = [sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), "up", "--background"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise StackError(f"The stack was not ready within {timeout_s:.0f} s.{_log_hint()}") from exc
    while (info := live_info(paths)) is None:
        if done.returncode != 0 or time.monotonic() > deadline:
            raise StackError(done.stderr.strip() or f"The stack did not start.{_log_hint()}")
        time.sleep(0.02)
    return info


def _log_hint() -> str:
    return f" Its log is {home_paths().log('up')}."
