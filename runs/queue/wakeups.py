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

from decisions.infra.redis import SharedRedis
from runners.models import BrowserSession
from runs.failpoints import hit
from runs.models import Run

if TYPE_CHECKING:
    from redis import Redis

SHARED_QUEUE = "runs"
MARK_MS = 250
QUIET_S = 5.0  # after the broker hung, no message is sent for this long
log = logging.getLogger(__name__)
_redis = SharedRedis("wake-ups of workers are not deduplicated")


class _Broker:
    """What this process knows about the broker."""

    quiet_until = 0.0


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
    """Send a wake-up now; False where the broker did not accept it."""
    hit("before_ring")
    began = time.monotonic()
    if began < _broker.quiet_until:
        return False
    notify: Callable[[str, str], None] = import_string(settings.CONTINUITY_NOTIFY_WORKERS)
    try:
        notify(queue, run_id)
    except Exception as error:  # noqa: BLE001  (any broker failure: workers look without wake-ups)
        log.warning("the broker is unavailable; workers look for runs without wake-ups: %s", error)
        if time.monotonic() - began > 1.0:
            _broker.quiet_until = time.monotonic() + QUIET_S
        return False
    return True


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


def _key() -> str:
    return f"{settings.REDIS_PREFIX}bell"
