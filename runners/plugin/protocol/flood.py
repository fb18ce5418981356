"""Limits of what one browser may send."""

from __future__ import annotations

import time
from collections.abc import Callable

PER_SECOND, BURST = 200, 400  # messages of one connection
CONNECTIONS, CONNECTIONS_S = 2, 1.0  # of one browser within a second
Clock = Callable[[], float]


class MessageBudget:
    """A token bucket: BURST messages at once, then PER_SECOND."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._left, self._at = float(BURST), clock()

    def take(self) -> bool:
        """Count a message; return False if it is one too many."""
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._at) * PER_SECOND)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class ConnectionBudget:
    """How often each browser has connected within the last second, to one process."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._recent: dict[str, list[float]] = {}

    def take(self, client_id: str) -> bool:
        """Count a connection; return False if it is one too many."""
        since = self._clock() - CONNECTIONS_S
        for other in [name for name, times in self._recent.items() if times[-1] <= since]:
            del self._recent[other]
        times = [one for one in self._recent.get(client_id, ()) if one > since]
        self._recent[client_id] = [*times, self._clock()]
        return len(times) < CONNECTIONS
