"""Publish over Redis, after the commit, that a run has new events (run id, last seq, types) or that
another row changed (topic, id).

Readers also poll, so a lost message only delays them.
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

from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.redis import redis_errors

CHANNEL = f"{settings.REDIS_PREFIX}runs"
QUIET_S = 1.0  # after a failure nothing is published for this long
BATCH = 100  # messages in one pipeline
log = logging.getLogger(__name__)


class _Publisher:
    """Publishes messages in batches, from its own thread and connection: no commit waits for Redis.

    Drops messages for QUIET_S after a failure.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[str] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def publish(self, message: str) -> None:
        """Queue a message to be published, without a guarantee. Returns at once."""
        self._waiting.put(message)
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._send, name="event-notifications", daemon=True
                    )
                    self._thread.start()

    def _send(self) -> None:
        import redis

        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1
        )
        outage = Outage(
            log,
            on_failure="Redis is unavailable: event notifications are dropped, readers poll",
            on_recovery="Redis is available again: event notifications are published",
        )
        while True:
            messages = self._take()
            try:
                pipeline = client.pipeline(transaction=False)
                for message in messages:
                    pipeline.publish(CHANNEL, message)
                pipeline.execute()
                outage.recovered()
            except redis_errors() as error:
                outage.failed(error)
                time.sleep(QUIET_S)
                while not self._waiting.empty():
                    self._waiting.get()
            except Exception:  # whatever it is: later notifications have to be sent
                log.exception("event notifications could not be sent; readers poll")

    def _take(self) -> list[str]:
        messages = [self._waiting.get()]
        while len(messages) < BATCH and not self._waiting.empty():
            messages.append(self._waiting.get())
        return messages


_publisher = _Publisher()


def publish_after_commit(run_id: str, seq: int, types: Iterable[str]) -> None:
    """Notify the run's readers, once the caller's transaction has committed, that its events go up
    to `seq` and that the new ones have these types.
    """
    message = json.dumps({"runId": run_id, "seq": seq, "types": list(set(types))})
    transaction.on_commit(lambda: _publisher.publish(message), robust=True)


def publish_change_after_commit(topic: str, row_id: str) -> None:
    """Notify the open pages of the admin, once the caller's transaction has committed, that a row
    changed; `topic` is the name of its model.
    """
    message = json.dumps({"topic": topic, "id": row_id})
    transaction.on_commit(lambda: _publisher.publish(message), robust=True)
