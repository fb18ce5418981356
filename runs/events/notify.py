"""Wake-ups: "run X now has events up to seq N, the new ones of these types", said over Redis after
the commit. A lost one does no harm.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterable
from queue import SimpleQueue

from django.conf import settings
from django.db import transaction

from decisions.infra.outages import Outage

CHANNEL = "continuity:runs"
QUIET_S = 1.0  # after a failure nothing is sent for this long
AT_ONCE = 100  # messages
log = logging.getLogger(__name__)


class _Publisher:
    """Sends from a thread of its own over one kept connection, together what came together: a
    commit waits for no server, and a busy worker pays for one sending, not for each.

    Silent for a moment after a failure.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[str] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def publish(self, message: str) -> None:
        """Have it sent soon, or not at all. Returns at once."""
        self._waiting.put(message)
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._send, name="wakeups", daemon=True)
                    self._thread.start()

    def _send(self) -> None:
        import redis

        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1
        )
        outage = Outage(
            log,
            away="redis does not take wake-ups; listeners poll meanwhile",
            back="redis takes wake-ups again",
        )
        while True:
            messages = self._take()
            try:
                line = client.pipeline(transaction=False)
                for message in messages:
                    line.publish(CHANNEL, message)
                line.execute()
                outage.is_over()
            except redis.RedisError as error:
                outage.goes_on(error)
                time.sleep(QUIET_S)
                while not self._waiting.empty():
                    self._waiting.get()

    def _take(self) -> list[str]:
        messages = [self._waiting.get()]
        while len(messages) < AT_ONCE and not self._waiting.empty():
            messages.append(self._waiting.get())
        return messages


_publisher = _Publisher()


def announce(run_id: str, seq: int, types: Iterable[str]) -> None:
    """Wake whoever follows the run, once the caller's transaction has committed: its log goes to
    `seq` now, by events of these types.
    """
    message = json.dumps({"runId": run_id, "seq": seq, "types": list(set(types))})
    transaction.on_commit(lambda: _publisher.publish(message), robust=True)
