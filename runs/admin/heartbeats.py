"""When a worker's beat was last seen to change, on this process's own monotonic clock (mechanisms
5).
"""

from __future__ import annotations

import threading
import time


class Beats:
    """What this web process has seen of the beats; a fresh process knows nothing and says so."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float, bool]] = {}
        self._lock = threading.Lock()

    def silent_s(self, worker_id: str, beat: int) -> float | None:
        """Note the beat; return the seconds since it changed, None while it has not been seen to
        change.
        """
        now = time.monotonic()
        with self._lock:
            known = self._seen.get(worker_id)
            if known is None or known[0] != beat:
                self._seen[worker_id] = (beat, now, known is not None)
                return 0.0 if known is not None else None
            _, since, changed = known
            return now - since if changed or now - since > 15 else None

    def keep_only(self, worker_ids: set[str]) -> None:
        """Forget everybody else."""
        with self._lock:
            self._seen = {key: seen for key, seen in self._seen.items() if key in worker_ids}


beats = Beats()
