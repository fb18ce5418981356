"""Rate limits: calls per credential and second, counted in Redis for all web processes together."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from decisions.infra.redis import SharedRedis

if TYPE_CHECKING:
    from redis import Redis

ROWS_PER_MINUTE = 3  # audit rows of one process for events that any client can cause


class CallCounter:
    """Count calls per name and second; while Redis is unavailable, no call is limited."""

    def __init__(self) -> None:
        self._redis = SharedRedis("calls are not throttled")

    def exceeds(self, name: str, *, limit: int) -> bool:
        """Count one call and tell whether there were more than `limit` in this second (one round
        trip).
        """
        key = f"continuity:calls:{name}:{int(time.time())}"

        def count(redis: Redis) -> int:
            with redis.pipeline(transaction=True) as pipe:
                pipe.incr(key)
                pipe.expire(key, 3)
                return int(pipe.execute()[0])

        return (self._redis.execute(count) or 0) > limit


class RowLimiter:
    """Limit audit rows for one kind of event to ROWS_PER_MINUTE, counting the events in between.

    The count is in memory: a flood of calls must cause neither writes nor calls to Redis.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._minute = 0
        self._rows = self._uncounted = 0

    def take(self) -> int:
        """Count one event; return how many events the row to write now stands for, 0 for no row."""
        with self._lock:
            minute = int(time.monotonic() // 60)
            if minute != self._minute:
                self._minute, self._rows = minute, 0
            self._uncounted += 1
            if self._rows >= ROWS_PER_MINUTE:
                return 0
            self._rows += 1
            count, self._uncounted = self._uncounted, 0
            return count
