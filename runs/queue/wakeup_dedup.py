"""Deduplicate wake-ups: keep at most one undelivered message on the shared queue.

A worker that receives a wake-up claims whatever is claimable, so further messages would find
nothing; each costs many times what a trivial run costs. The marker of an undelivered message is a
Redis key. It is set after the run's transaction committed and deleted before the worker looks for
runs, so the worker sees every run whose wake-up was left out. If a worker dies in between, the
marker expires after MARK_MS, and the scheduler sends the wake-ups again
(`runs.queue.outbox.resend_wakeups`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from decisions.infra.redis import SharedRedis

if TYPE_CHECKING:
    from redis import Redis

SHARED_QUEUE = "runs"
MARK_MS = 250
_redis = SharedRedis("wake-ups of workers are not deduplicated")


def _key() -> str:
    return f"{settings.CELERY_BROKER_TRANSPORT_OPTIONS['global_keyprefix']}bell"


def should_send(queue: str) -> bool:
    """Return whether the queue has no undelivered wake-up, and mark that it has one from now on.

    Always True for a worker's own queue, whose wake-ups are rare, and while Redis is unavailable.
    """
    if queue != SHARED_QUEUE:
        return True

    def mark(redis: Redis) -> bool:
        return bool(redis.set(_key(), 1, nx=True, px=MARK_MS))

    return _redis.execute(mark) is not False


def mark_received() -> None:
    """Mark that the shared queue has no undelivered wake-up; call it before looking for runs."""
    _redis.execute(lambda redis: redis.delete(_key()))
