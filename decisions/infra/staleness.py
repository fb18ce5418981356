"""Detection of stale leases: how long a value has not changed, on the observer's monotonic clock.

Wall clocks are not used, so that clock jumps and clock skew between machines have no effect.
"""

from __future__ import annotations

import time
from collections.abc import Hashable

MAX_GAP_S = 15.0  # far longer than the polling interval of any observer


class ChangeWatch:
    """Measures how long values have not changed, by polling.

    After a gap of more than MAX_GAP_S between two rounds, such as an outage of the database, every
    measurement starts again: values may have changed in the gap.
    """

    def __init__(self) -> None:
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
        if key not in self._seen or self._seen[key][0] != value:
            self._seen[key] = (value, now)
        return now - self._seen[key][1]

    def keep_only(self, keys: set[Hashable]) -> None:
        """Forget all other keys."""
        self._seen = {key: seen for key, seen in self._seen.items() if key in keys}
