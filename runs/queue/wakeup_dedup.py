"""At most one doorbell that nobody heard yet: a bell says "look for work", and who looks finds the
runs of all who would have rung.

A bell costs a message and a look, many times what a trivial run costs; under a burst nearly all of
them find nothing. The mark that one is under way is a key in Redis. It is set after the run's
commit and taken away before the look: a run whose bell is left out is always seen by the look of
the one that it was left out for. A mark that stays, because a worker died between hearing and
looking, is gone after MARK_MS; what was left out meanwhile is the sweeper's matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from decisions.infra.redis import SharedRedis

if TYPE_CHECKING:
    from redis import Redis

SHARED_QUEUE = "runs"
MARK_MS = 250
_redis = SharedRedis("every run rings for itself")


def _key() -> str:
    return f"{settings.CELERY_BROKER_TRANSPORT_OPTIONS['global_keyprefix']}bell"


def should_send(queue: str) -> bool:
    """Tell whether no bell is under way on this queue, and mark that one is now. True while Redis
    is away, and for a worker's own queue: its bells are rare and meant for nobody else.
    """
    if queue != SHARED_QUEUE:
        return True

    def mark(redis: Redis) -> bool:
        return bool(redis.set(_key(), 1, nx=True, px=MARK_MS))

    return _redis.execute(mark) is not False


def mark_received() -> None:
    """Say that somebody looks for work from now on."""
    _redis.execute(lambda redis: redis.delete(_key()))
