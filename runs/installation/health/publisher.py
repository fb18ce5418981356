"""Where the numbers of all processes meet, for /metrics: one hash in Redis that each adds to.

Added up there, a counter goes on when its worker is gone, and no label has to name workers. Redis
may lose all of it: then the counters begin at 0 again, which Prometheus knows to read. What is so
just now (open pages) stands in a key of each worker that ends by itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
from django.conf import settings

from decisions.infra.redis import SharedRedis
from runners import metrics
from runners.metrics import METRICS, Series

if TYPE_CHECKING:
    from redis import Redis

PUBLISH_S = 5.0
NOW_LIVES_S = 30
Gauges = Mapping[str, float]
log = logging.getLogger(__name__)
_redis = SharedRedis("/metrics is without steps, runners and browsers")


@dataclass(frozen=True, slots=True)
class Published:
    """What all processes published.

    Attributes:
        now: what is so just now, added up over the workers that were asked for.
    """

    numbers: Mapping[Series, float]
    now: Gauges


def _key(name: str) -> str:
    return f"{settings.CELERY_BROKER_TRANSPORT_OPTIONS['global_keyprefix']}figures{name}"


def publish(worker_id: str | None = None, now: Gauges | None = None) -> bool:
    """Bring on what this process counted, and what is so now; tell whether Redis took it.

    What it does not take is kept for the next time. A connection that breaks while it answers can
    have a portion counted twice.
    """
    taken = metrics.drain()
    if not taken and not now:
        return True

    def bring(redis: Redis) -> bool:
        with redis.pipeline(transaction=True) as pipe:
            for series, number in taken.items():
                pipe.hincrbyfloat(_key(""), orjson.dumps(series).decode(), number)
            if worker_id and now:
                pipe.set(_key(f":{worker_id}"), orjson.dumps(dict(now)), ex=NOW_LIVES_S)
            pipe.execute()
        return True

    if _redis.execute(bring):
        return True
    metrics.restore(taken)
    return False


def read_published(worker_ids: Iterable[str]) -> Published | None:
    """Return the numbers of all processes; None while Redis is away."""
    keys = [_key(f":{worker_id}") for worker_id in worker_ids]

    def read(redis: Redis) -> tuple[Mapping[bytes, bytes], list[bytes | None]]:
        with redis.pipeline(transaction=False) as pipe:
            pipe.hgetall(_key(""))
            if keys:
                pipe.mget(keys)
            found = pipe.execute()
        return found[0], found[1] if keys else []

    found = _redis.execute(read)
    if found is None:
        return None
    numbers, told = found
    return Published(dict(_known(numbers)), _added_up(told))


def _known(numbers: Mapping[bytes, bytes]) -> Iterable[tuple[Series, float]]:
    """Yield the series of figures that this version knows; a fleet may have others in it."""
    for field, number in numbers.items():
        series = tuple(orjson.loads(field))
        figure = METRICS.get(series[0])
        if figure and len(series) == 1 + len(figure.labels) + bool(figure.bounds):
            yield series, float(number)


def _added_up(told: Iterable[bytes | None]) -> Gauges:
    total: dict[str, float] = {}
    for one in told:
        for name, value in (orjson.loads(one) if one else {}).items():
            total[name] = total.get(name, 0.0) + value
    return total


class Publisher:
    """Publishes every few seconds on a thread of its own, from `start` to `stop`."""

    def __init__(self, now: Callable[[], tuple[str, Gauges]] | None = None) -> None:
        """Make it; `now` returns the worker's id and what is so in it."""
        self._now = now
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, wait_s: float = 0.0) -> None:
        """Publish a last time and end; returns at once unless it is to wait for that."""
        self._stopping.set()
        if wait_s:
            self._thread.join(wait_s)

    def _run(self) -> None:
        is_over = False
        while not is_over:
            is_over = self._stopping.wait(PUBLISH_S)
            if self._now is None:
                publish()
            else:
                publish(*self._now())
