"""Adapt the number of tabs that work on a batch at once to the load of the processors.

Pages that wait for the network gain from every tab. Pages that compute gain nothing beyond about
two tabs per core (with 2 cores, 2 to 6 tabs are equally fast); more only use memory and slow each
other down. So a batch starts with the requested number and gives up tabs one by one while the
processors are saturated.
"""

from __future__ import annotations

import os
import time
import weakref
from typing import ClassVar

from runners.browser.pool.cpu import SAMPLE_SECONDS, CpuLoad, usable_cores

SATURATED = 0.95
SPARE = 0.80
TABS_PER_CORE = 2
MAX_INTERVAL = 5.0  # seconds between two changes, even if pages take longer


class AdaptiveConcurrency:
    """The number of tabs that one batch may use at once.

    Batches of one process share its cores: the more there are, the fewer tabs each uses under load.
    """

    _live: ClassVar[weakref.WeakSet[AdaptiveConcurrency]] = weakref.WeakSet()

    def __init__(self, requested: int) -> None:
        self.requested = max(1, requested)
        self._current = self.requested
        self._changed_at = time.monotonic()
        self._live.add(self)

    def current(self) -> int:
        """Return how many tabs to use from now on: 1 to the requested number."""
        return self._current

    def record(self, seconds: float) -> None:
        """Record that a page took `seconds`, and change the number of tabs by at most one.

        Two changes are at least the time of a page apart, so that the first has had its effect.
        """
        if self.requested == 1:
            return  # most runs: the number cannot be lowered
        now = time.monotonic()
        if now - self._changed_at < max(SAMPLE_SECONDS, min(seconds, MAX_INTERVAL)):
            return
        busy = _loads.setdefault(os.getpid(), CpuLoad()).busy()
        if busy is None:
            return
        self._changed_at = now
        if busy >= SATURATED and self._current > self._enough():
            self._current -= 1
        elif busy <= SPARE and self._current < self.requested:
            self._current += 1

    def _enough(self) -> int:
        """Return the number of tabs that keeps this batch's share of the cores busy."""
        return max(1, round(usable_cores() * TABS_PER_CORE / len(self._live)))


_loads: dict[int, CpuLoad] = {}  # by process: all its batches share the measurement
