"""How often a credential calls: counted in Redis, for all web processes together (reliability rule
10).
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from decisions.infra.redis import SharedRedis

if TYPE_CHECKING:
    from redis import Redis

ROWS_A_MINUTE = 3  # of one process, for what anybody can cause


class CallCounter:
    """Calls per name and second. What Redis does not count is let pass: it may be lost without
    harm.
    """

    def __init__(self) -> None:
        self._redis = SharedRedis("nobody is throttled")

    def exceeds(self, name: str, *, limit: int) -> bool:
        """Count one call and tell whether there were more than `limit` in this second; one round
        trip.
        """
        key = f"continuity:calls:{name}:{int(time.time())}"

        def count(redis: Redis) -> int:
            with redis.pipeline(transaction=True) as pipe:
                pipe.incr(key)
                pipe.expire(key, 3)
                return int(pipe.execute()[0])

        return (self._redis.execute(count) or 0) > limit


class RowLimiter:
    """Lets the first ROWS_A_MINUTE of a kind of event be told, and counts the others. In memory: a
    flood must not write anywhere, nor hang on Redis.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._minute = 0
        self._rows = self._untold = 0

    def take(self) -> int:
        """Return how many events the row stands for that is to be written now; 0: write none."""
        with self._lock:
            minute = int(time.monotonic() // 60)
            if minute != self._minute:
                self._minute, self._rows = minute, 0
            self._untold += 1
            if self._rows >= ROWS_A_MINUTE:
                return 0
            self._rows += 1
            count, self._untold = self._untold, 0
            return count
