"""Unix milliseconds, the unit of every time in requests, responses and events."""

from __future__ import annotations

import time
from datetime import datetime
from typing import overload


def now_ms() -> int:
    """Return the present time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


@overload
def to_ms(at: datetime) -> int: ...
@overload
def to_ms(at: None) -> None: ...
def to_ms(at: datetime | None) -> int | None:
    """Return a time in Unix milliseconds; None stays None."""
    return None if at is None else int(at.timestamp() * 1000)
