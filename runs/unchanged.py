"""How leases are judged: by a value that moves, and the watcher's own monotonic clock. Wall clocks
and their jumps play no part (mechanisms 5).
"""

from __future__ import annotations

import time
from collections.abc import Hashable


class Watch:
    """Tells for how long, on the monotonic clock, a thing has shown the same value."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, tuple[object, float]] = {}

    def unchanged_s(self, key: Hashable, value: object) -> float:
        """Note the value and return the seconds since it was first seen."""
        now = time.monotonic()
        if key not in self._seen or self._seen[key][0] != value:
            self._seen[key] = (value, now)
        return now - self._seen[key][1]

    def keep_only(self, keys: set[Hashable]) -> None:
        """Forget everything else."""
        self._seen = {key: seen for key, seen in self._seen.items() if key in keys}
