"""How many tabs of a batch work at once: all that were asked for while there is time to spare.

Pages that wait for the network gain from every tab; pages that compute gain nothing beyond about
two tabs a core (2 to 6 tabs read alike on 2 cores) and only take memory and time from each other.
So a batch begins with what was asked for and gives tabs up, one by one, while the processors are
saturated.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from typing import ClassVar

from runners.browser.pool.cpu import SAMPLE_SECONDS, CpuLoad, usable_cores

SATURATED = 0.95
SPARE = 0.80
TABS_PER_CORE = 2
LONGEST_PAUSE = 5.0


class AdaptiveConcurrency:
    """The number of tabs that one batch may use at once.

    Batches of one process share its cores: the more there are, the fewer tabs each keeps under
    load.
    """

    _live: ClassVar[weakref.WeakSet[AdaptiveConcurrency]] = weakref.WeakSet()

    def __init__(
        self,
        asked: int,
        *,
        load: CpuLoad | None = None,
        cores: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.asked = max(1, asked)
        self._load = load
        self._cores = cores
        self._clock = clock
        self._current = self.asked
        self._changed_at = clock()
        self._live.add(self)

    def current(self) -> int:
        """Return how many tabs to use from now on, 1 to the number asked for."""
        return self._current

    def record(self, seconds: float) -> None:
        """Take note that a page is over after `seconds`, and change the number by at most one.

        Between two changes lies at least the time of a page, so that the first is felt before the
        second.
        """
        if self.asked == 1:
            return  # most runs: nothing to give up, so nothing to measure
        now = self._clock()
        if now - self._changed_at < max(SAMPLE_SECONDS, min(seconds, LONGEST_PAUSE)):
            return
        self._load = self._load or _shared_load()
        busy = self._load.busy()
        if busy is None:
            return
        self._changed_at = now
        if busy >= SATURATED and self._current > self._enough():
            self._current -= 1
        elif busy <= SPARE and self._current < self.asked:
            self._current += 1

    def _enough(self) -> int:
        """Return the number of tabs that keeps this batch's share of the cores busy."""
        self._cores = self._cores or usable_cores()
        return max(1, round(self._cores * TABS_PER_CORE / len(self._live)))


_loads: dict[int, CpuLoad] = {}


def _shared_load() -> CpuLoad:
    """Return this process's one measure of the processors."""
    return _loads.setdefault(os.getpid(), CpuLoad())
