"""How long ago a worker's heartbeat changed, measured with this process's monotonic clock.

Clocks of different machines may differ, so no timestamps are compared.
"""

from __future__ import annotations

import threading
import time


class HeartbeatAges:
    """The heartbeats that this web process has seen; a new process knows no ages yet."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float, bool]] = {}
        self._lock = threading.Lock()

    def age_s(self, worker_id: str, heartbeat: int) -> float | None:
        """Record the heartbeat and return the seconds since it changed; None if that is unknown."""
        now = time.monotonic()
        with self._lock:
            known = self._seen.get(worker_id)
            if known is None or known[0] != heartbeat:
                self._seen[worker_id] = (heartbeat, now, known is not None)
                return 0.0 if known is not None else None
            _, since, changed = known
            return now - since if changed or now - since > 15 else None

    def keep_only(self, worker_ids: set[str]) -> None:
        """Forget all other workers."""
        with self._lock:
            self._seen = {key: seen for key, seen in self._seen.items() if key in worker_ids}


heartbeat_ages = HeartbeatAges()
