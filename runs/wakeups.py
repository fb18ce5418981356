"""Wake-ups: "run X now has events up to seq N", said over Redis after the commit. A lost one does
no harm.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

if TYPE_CHECKING:
    from redis import Redis

CHANNEL = "continuity:runs"
QUIET_S = 1.0  # after a failure nobody waits for Redis for this long
log = logging.getLogger(__name__)


class _Bell:
    """One kept connection per process; silent for a moment after a failure, so that no commit waits
    for a dead server.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: Redis | None = None
        self._quiet_until = 0.0

    def publish(self, message: str) -> None:
        """Send, or let it be."""
        if time.monotonic() < self._quiet_until:
            return
        import redis

        try:
            with self._lock:
                if self._client is None:
                    self._client = redis.Redis.from_url(
                        settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1
                    )
            self._client.publish(CHANNEL, message)
        except redis.RedisError as error:
            self._quiet_until = time.monotonic() + QUIET_S
            log.warning("redis does not take wake-ups; listeners poll meanwhile: %s", error)


_bell = _Bell()


def announce(run_id: str, seq: int) -> None:
    """Wake whoever listens to the run, once the caller's transaction has committed."""
    message = json.dumps({"runId": run_id, "seq": seq})
    transaction.on_commit(lambda: _bell.publish(message), robust=True)
