"""Wait for the effects of other threads and processes."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], object], within_s: float = 30.0) -> bool:
    """Return whether the condition becomes true in time; stop polling once it is."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def wait_until(condition: Callable[[], object], within_s: float = 60.0) -> None:
    """Wait until the condition is true; fail if it does not become true in time."""
    assert eventually(condition, within_s), "it never came true"
