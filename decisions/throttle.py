"""How often a credential calls: counted in Redis, for all web processes together (reliability rule
10).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from decisions.kept_redis import KeptRedis

if TYPE_CHECKING:
    from redis import Redis


class CallCounter:
    """Calls per name and second. What Redis does not count is let pass: it may be lost without
    harm.
    """

    def __init__(self) -> None:
        self._redis = KeptRedis("nobody is throttled")

    def is_over(self, name: str, *, limit: int) -> bool:
        """Count one call and tell whether there were more than `limit` in this second; one round
        trip.
        """
        key = f"continuity:calls:{name}:{int(time.time())}"

        def count(redis: Redis) -> int:
            with redis.pipeline(transaction=True) as pipe:
                pipe.incr(key)
                pipe.expire(key, 3)
                return int(pipe.execute()[0])

        return (self._redis.ask(count) or 0) > limit
