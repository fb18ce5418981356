"""Publish metrics for /metrics: every process adds its counts to one hash in Redis.

So a counter survives its worker, and no label has to name workers. If Redis loses the hash, the
counters start from 0 again, which Prometheus handles as a counter reset. Gauges, such as open
pages, are in one key per worker, which expires.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
from django.conf import settings
from django.db import Error, connection

from decisions.audit.anonymous_events import take_anonymous_totals, write_counted_events
from decisions.foundation.infra.redis import SharedRedis
from decisions.foundation.infra.threads import RepeatingThread
from runners import metrics
from runners.metrics import METRICS, Series

if TYPE_CHECKING:
    from redis import Redis

PUBLISH_S = 5.0
GAUGES_TTL_S = 30
Gauges = Mapping[str, float]
log = logging.getLogger(__name__)
_redis = SharedRedis("/metrics lacks steps, runners and browsers")


@dataclass(frozen=True, slots=True)
class PublishedMetrics:
    """What all processes have published.

    Attributes:
        numbers: counters and histogram buckets.
        gauges: added up over the requested workers.
    """

    numbers: Mapping[Series, float]
    gauges: Gauges


def _key(name: str) -> str:
    return f"{settings.REDIS_PREFIX}figures{name}"


def publish(worker_id: str | None = None, gauges: Gauges | None = None) -> bool:
    """Add this process's counts to Redis and set its gauges; return False if Redis is unavailable.

    Counts that could not be published are published next time. If the connection breaks after Redis
    has executed the transaction, they are counted twice.
    """
    metrics.anonymous_events(take_anonymous_totals())
    counts = metrics.drain()
    if not counts and not gauges:
        return True

    def send(redis: Redis) -> bool:
        with redis.pipeline(transaction=True) as pipe:
            for series, number in counts.items():
                pipe.hincrbyfloat(_key(""), orjson.dumps(series).decode(), number)
            if worker_id and gauges:
                pipe.set(_key(f":{worker_id}"), orjson.dumps(dict(gauges)), ex=GAUGES_TTL_S)
            pipe.execute()
        return True

    if _redis.execute(send):
        return True
    metrics.restore(counts)
    return False


def read_published(worker_ids: Iterable[str]) -> PublishedMetrics | None:
    """Return the numbers of all processes and the gauges of these workers; None without Redis."""
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
    numbers, gauges = found
    return PublishedMetrics(dict(_known(numbers)), _sum(gauges))


def _known(numbers: Mapping[bytes, bytes]) -> Iterable[tuple[Series, float]]:
    """Yield the series that this version knows; other versions in the fleet may add more."""
    for field, number in numbers.items():
        series = tuple(orjson.loads(field))
        metric = METRICS.get(series[0])
        if metric and len(series) == 1 + len(metric.labels) + bool(metric.bounds):
            yield series, float(number)


def _sum(gauges: Iterable[bytes | None]) -> Gauges:
    total: dict[str, float] = {}
    for one in gauges:
        for name, value in (orjson.loads(one) if one else {}).items():
            total[name] = total.get(name, 0.0) + value
    return total


class Publisher:
    """Publishes every PUBLISH_S on a thread of its own, from `start` to `stop`.

    Args:
        read_gauges: returns the worker's id and its gauges.
    """

    def __init__(self, read_gauges: Callable[[], tuple[str, Gauges]] | None = None) -> None:
        self._read_gauges = read_gauges
        self._thread = RepeatingThread(
            self._publish, name="publisher", every_s=PUBLISH_S, last=self._publish_last
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, wait_s: float = 0.0) -> None:
        """Publish a last time and stop; wait for that for `wait_s` at most."""
        self._thread.stop(wait_s)

    def _publish(self, *, is_stopping: bool = False) -> None:
        if self._read_gauges is None:
            publish()
        else:
            publish(*self._read_gauges())
        write_anonymous_events(is_stopping=is_stopping)

    def _publish_last(self) -> None:
        self._publish(is_stopping=True)


def write_anonymous_events(*, is_stopping: bool) -> None:
    """Write the audit rows of the anonymous events that were counted in the last minute."""
    try:
        if write_counted_events(unfinished=is_stopping):
            connection.close()
    except Error as error:
        log.warning("audit rows of anonymous events were lost: %s", type(error).__name__)
        connection.close()
