"""Wait for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(is_so: Callable[[], object], within_s: float = 30.0) -> bool:
    """Tell whether something becomes so; asked no more once it was."""
    deadline = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def until(is_so: Callable[[], object], within_s: float = 60.0) -> None:
    """Wait until something is so; fail when it never is."""
    assert eventually(is_so, within_s), "it never came true"
