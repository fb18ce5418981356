"""Wake-ups: messages that tell workers to look for claimable runs; they may be lost.

A wake-up is sent after the commit that makes a run claimable. A worker that receives one claims
whatever is claimable, so at most one undelivered message is kept on the shared queue: further ones
would find nothing, and each costs many times what a trivial run costs. The marker of an undelivered
message is a Redis key. It is set after the run's transaction committed and deleted before the
worker looks for runs, so the worker sees every run whose wake-up was left out. If a worker dies in
between, the marker expires after MARK_MS. A run whose wake-up is lost is claimed by a worker that
looks without one (`runs.worker.worker`); docs/wake-ups.md shows what covers what.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.redis import SharedRedis
from runners.models import BrowserSession
from runs.failpoints import hit
from runs.models import Run

if TYPE_CHECKING:
    from redis import Redis

SHARED_QUEUE = "runs"
MARK_MS = 250
PROBE_S = 1.0
log = logging.getLogger(__name__)
_redis = SharedRedis("workers get no wake-ups, and poll the database for runs")
_outage = Outage(
    log,
    on_failure="the broker takes no wake-ups; workers poll the database for runs",
    on_recovery="the broker takes wake-ups again",
)


class _Broker:
    """What this process knows about the broker."""

    probe_at = 0.0
    takes_writes = True


_broker = _Broker()


def worker_queue(worker_id: str) -> str:
    """Return the name of a worker's own queue."""
    return f"runs.{worker_id}"


def send_after_commit(run: Run) -> None:
    """Send a wake-up for a run once the caller's transaction has committed."""
    queue = _queue_of(run)
    transaction.on_commit(lambda: send(queue, run.id), robust=True)


def _queue_of(run: Run) -> str:
    """Return the queue for a run's wake-up: that of the worker that holds its session, if any."""
    worker_id = run.pinned_worker
    if not run.owns_session:
        session = BrowserSession.objects.filter(id=run.session_id, worker_id__isnull=False)
        worker_id = session.values_list("worker_id", flat=True).first() or worker_id
    return worker_queue(worker_id) if worker_id else SHARED_QUEUE


def send(queue: str, run_id: str) -> bool:
    """Send a wake-up now, unless the queue has an undelivered one; False where the broker did not
    accept it.
    """
    hit("before_wakeup")
    if (is_first := _mark_sent(queue)) is None:
        return False  # Redis is unavailable: sending would take as long as its time-outs
    if not is_first:
        return True
    notify: Callable[[str, str], None] = import_string(settings.CONTINUITY_NOTIFY_WORKERS)
    try:
        notify(queue, run_id)
    except Exception as error:  # noqa: BLE001  (any broker failure: workers look without wake-ups)
        mark_received()  # nothing was sent: later wake-ups must not be left out
        _outage.failed(error)
        return False
    _outage.recovered()
    return True


def _mark_sent(queue: str) -> bool | None:
    """Mark that the queue has an undelivered wake-up; False if it has one already, None while Redis
    takes no writes.

    A worker's own queue always gets one: such wake-ups are rare.
    """

    if queue != SHARED_QUEUE:
        return _redis.execute(_write_probe)
    return _redis.execute(lambda redis: bool(redis.set(_key(), 1, nx=True, px=MARK_MS)))


def _write_probe(redis: Redis) -> bool:
    return bool(redis.set(f"{settings.REDIS_PREFIX}probe", 1, px=MARK_MS))


def can_be_sent() -> bool:
    """Return whether the broker takes writes now; asks it at most every PROBE_S."""
    if time.monotonic() >= _broker.probe_at:
        _broker.probe_at = time.monotonic() + PROBE_S
        _broker.takes_writes = bool(_redis.execute(_write_probe))
    return _broker.takes_writes


def mark_received() -> None:
    """Mark that the shared queue has no undelivered wake-up; call it before looking for runs."""
    _redis.execute(lambda redis: redis.delete(_key()))


def _key() -> str:
    return f"{settings.REDIS_PREFIX}wakeup:undelivered"
