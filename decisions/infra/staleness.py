"""How leases are judged: by a value that moves, and the watcher's own monotonic clock. Wall clocks
and their jumps play no part (mechanisms 5).
"""

from __future__ import annotations

import time
from collections.abc import Hashable

MAX_GAP_S = 15.0  # every watcher looks much more often while it can


class ChangeWatch:
    """Tells for how long, on the monotonic clock, a thing has shown the same value.

    Time in which nobody could look is no time in which nothing moved: after a longer gap between
    two looks, as while the database was away, every clock starts anew.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, tuple[object, float]] = {}
        self._looked_at = time.monotonic()

    def start_round(self) -> None:
        """Say that a round of looks begins."""
        now = time.monotonic()
        if now - self._looked_at > MAX_GAP_S:
            self._seen.clear()
        self._looked_at = now

    def unchanged_s(self, key: Hashable, value: object) -> float:
        """Note the value and return the seconds since it was first seen."""
        now = time.monotonic()
        if key not in self._seen or self._seen[key][0] != value:
            self._seen[key] = (value, now)
        return now - self._seen[key][1]

    def keep_only(self, keys: set[Hashable]) -> None:
        """Forget everything else."""
        self._seen = {key: seen for key, seen in self._seen.items() if key in keys}
