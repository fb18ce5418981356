"""How often a credential calls: counted in Redis, for all web processes together (reliability rule
10).
"""

from __future__ import annotations

import logging
import threading
import time
from functools import cached_property
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from redis import Redis

QUIET_S = 2.0  # after a failure no caller waits for Redis for this long
_TIMEOUT_S = 0.5
log = logging.getLogger(__name__)


class CallCounter:
    """Calls per name and second. What Redis does not count is let pass: it may be lost without
    harm.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._quiet_until = 0.0
        self._away = False

    def is_over(self, name: str, *, limit: int) -> bool:
        """Count one call and tell whether there were more than `limit` in this second; one round
        trip.
        """
        if time.monotonic() < self._quiet_until:
            return False
        from redis import RedisError  # loaded by the first call, not at start-up

        key = f"continuity:calls:{name}:{int(time.time())}"
        try:
            with self._client.pipeline(transaction=True) as pipe:
                pipe.incr(key)
                pipe.expire(key, 3)
                counted = int(pipe.execute()[0])
        except RedisError as error:
            self._go_quiet(error)
            return False
        self._away = False
        return counted > limit

    @cached_property
    def _client(self) -> Redis:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        return Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
            retry=Retry(NoBackoff(), 1),  # at once: a kept connection may have gone stale
        )

    def _go_quiet(self, error: Exception) -> None:
        with self._lock:
            self._quiet_until = time.monotonic() + QUIET_S
            first, self._away = not self._away, True
        if first:
            log.warning("redis does not count calls; nobody is throttled meanwhile: %s", error)
