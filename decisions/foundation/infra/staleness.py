"""How long a value, such as a heartbeat, has not changed, on the observer's monotonic clock.

Wall clocks are not used, so that clock jumps and clock skew between machines have no effect.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Hashable

MAX_GAP_S = 15.0  # far longer than the polling interval of any observer


class ChangeWatch:
    """Measures how long values have not changed, by polling; threads may share one.

    After a gap of more than MAX_GAP_S between two rounds, such as an outage of the database, every
    measurement starts again: values may have changed in the gap. Without rounds, a gap counts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[Hashable, tuple[object, float]] = {}
        self._polled_at = time.monotonic()

    def start_round(self) -> None:
        """Start a polling round; call it before the `unchanged_s` calls of the round."""
        now = time.monotonic()
        if now - self._polled_at > MAX_GAP_S:
            self._seen.clear()
        self._polled_at = now

    def unchanged_s(self, key: Hashable, value: object) -> float:
        """Record the value and return the seconds since it was first seen."""
        now = time.monotonic()
        with self._lock:
            if key not in self._seen or self._seen[key][0] != value:
                self._seen[key] = (value, now)
            return now - self._seen[key][1]

    def keep_only(self, keys: Collection[Hashable]) -> None:
        """Forget all other keys."""
        with self._lock:
            self._seen = {key: seen for key, seen in self._seen.items() if key in keys}
