"""Failpoints: named places in the code where a fault test makes the process die, wait or raise.
They do nothing unless the setting FAILPOINTS is on, as only the tests' settings have it.

A test arms one by writing `kill`, `wait` or `raise` into CONTINUITY_HOME/failpoints/NAME. Reaching
it creates NAME.hit beside it, so that a test can detect a failpoint that was never reached. `kill`
and `raise` fire once; `wait` waits until the file is deleted.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from django.conf import settings


class FailpointHit(Exception):
    """Raised by a failpoint armed with `raise`."""


def hit(name: str) -> None:
    """Execute the action that a test armed the failpoint with; nothing in production."""
    if not settings.FAILPOINTS:
        return
    armed = Path(settings.CONTINUITY_HOME) / "failpoints" / name
    try:
        action = armed.read_text().strip()
    except FileNotFoundError:
        return
    armed.with_name(f"{name}.hit").touch()
    if action == "wait":
        while armed.exists():
            time.sleep(0.02)
        return
    armed.unlink(missing_ok=True)
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise FailpointHit(name)
