"""Rate limits: calls per credential and second, counted in Redis for all web processes together."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.conf import settings

from decisions.foundation.infra.redis import SharedRedis

if TYPE_CHECKING:
    from redis import Redis


class CallCounter:
    """Count calls per name and second; while Redis is unavailable, no call is limited."""

    def __init__(self) -> None:
        self._redis = SharedRedis("calls are not throttled")

    def exceeds(self, name: str, *, limit: int) -> bool:
        """Count one call and return whether there were more than `limit` in this second (one round
        trip).
        """
        key = f"{settings.REDIS_PREFIX}calls:{name}:{int(time.time())}"

        def count(redis: Redis) -> int:
            with redis.pipeline(transaction=True) as pipe:
                pipe.incr(key)
                pipe.expire(key, 3)
                return int(pipe.execute()[0])

        return (self._redis.execute(count) or 0) > limit
