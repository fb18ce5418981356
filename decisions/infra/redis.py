"""One kept connection to Redis for what may be lost without harm: a short patience, and silence for
a moment after a failure, so that no caller waits twice for a server that is away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings

from decisions.infra.outages import Outage

if TYPE_CHECKING:
    from redis import Redis

QUIET_S = 2.0  # after a failure no caller waits for Redis for this long
_TIMEOUT_S = 0.5
Answer = TypeVar("Answer")
log = logging.getLogger(__name__)


@cache
def _client(url: str) -> Redis:
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Redis.from_url(
        url,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
        retry=Retry(NoBackoff(), 1),  # at once: a kept connection may have gone stale
    )


class SharedRedis:
    """Asks Redis on behalf of threads; `what_is_lost` goes into the one warning of an absence."""

    def __init__(self, what_is_lost: str) -> None:
        self._quiet_until = 0.0
        self._outage = Outage(
            log, on_failure=f"redis is away; {what_is_lost} meanwhile", on_recovery="redis is back"
        )

    def execute(self, question: Callable[[Redis], Answer]) -> Answer | None:
        """Return the answer, or None while Redis is away."""
        if time.monotonic() < self._quiet_until:
            return None
        from redis import RedisError  # loaded by the first call, not at start-up

        try:
            answer = question(_client(settings.REDIS_URL))
        except RedisError as error:
            self._quiet_until = time.monotonic() + QUIET_S
            self._outage.failed(error)
            return None
        self._outage.recovered()
        return answer
