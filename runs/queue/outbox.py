"""The outbox: wake-ups for workers, sent at least once.

The transaction that queues a run also inserts its wake-up as a row; the claim of the run deletes
it. A message is sent after the commit, and again by the scheduler while the row is there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

from runners.models import BrowserSession
from runs.failpoints import hit
from runs.lifecycle.slots import count_free_slots
from runs.models import OutboxEntry, Run
from runs.queue.wakeup_dedup import SHARED_QUEUE, mark_received

QUIET_S = 5.0  # after the broker hung, no message is sent for this long
log = logging.getLogger(__name__)


class _Broker:
    """What this process knows about the broker."""

    quiet_until = 0.0


_broker = _Broker()


def queue_of(run: Run) -> str:
    """Return the queue for a run's wake-up: that of the worker that holds its session, if any."""
    worker_id = run.pinned_worker
    if not run.owns_session:
        session = BrowserSession.objects.filter(id=run.session_id, worker_id__isnull=False)
        worker_id = session.values_list("worker_id", flat=True).first() or worker_id
    return worker_queue(worker_id) if worker_id else SHARED_QUEUE


def outbox_entry(run: Run, queue: str) -> OutboxEntry:
    """Return the unsaved outbox entry of a run."""
    return OutboxEntry(run_id=run.id, queue=queue, rung_at=datetime.now(UTC))


def put(run: Run) -> None:
    """Insert the run's wake-up in the caller's transaction, and send it after the commit."""
    queue = queue_of(run)
    OutboxEntry.objects.bulk_create(
        [outbox_entry(run, queue)],
        update_conflicts=True,
        unique_fields=["run_id"],
        update_fields=["queue", "rung_at"],
    )
    send_wakeup_after_commit(queue, run.id)


def send_wakeup_after_commit(queue: str, run_id: str) -> None:
    """Send a wake-up once the caller's transaction has committed. If the broker is unavailable, the
    scheduler sends it later.
    """
    transaction.on_commit(lambda: send_wakeup(queue, run_id), robust=True)


def worker_queue(worker_id: str) -> str:
    """Return the name of a worker's own queue."""
    return f"runs.{worker_id}"


def send_wakeup(queue: str, run_id: str) -> bool:
    """Send a wake-up now; False where the broker did not accept it."""
    hit("before_ring")
    began = time.monotonic()
    if began < _broker.quiet_until:
        return False
    notify: Callable[[str, str], None] = import_string(settings.CONTINUITY_NOTIFY_WORKERS)
    try:
        notify(queue, run_id)
    except Exception as error:  # noqa: BLE001  (any broker failure: the row is sent again)
        log.warning("the broker is unavailable; the scheduler sends the wake-up again: %s", error)
        if time.monotonic() - began > 1.0:
            _broker.quiet_until = time.monotonic() + QUIET_S
        return False
    return True


def resend_wakeups() -> int:
    """Send the wake-ups of runs that were not claimed within SWEEP_AFTER_S again, on the shared
    queue; return how many.

    At most one for each free slot: a worker that frees a slot looks for runs by itself. Calling it
    in two schedulers at once, or after the clock jumped, only sends some wake-ups too often.
    """
    now = datetime.now(UTC)
    after = timedelta(seconds=settings.SWEEP_AFTER_S)
    unclaimed = OutboxEntry.objects.exclude(rung_at__range=(now - after, now + after))
    sent = 0
    for entry in unclaimed.order_by("rung_at")[: count_free_slots()]:
        mark_received()  # the undelivered message that these runs relied on has been lost
        if not send_wakeup(SHARED_QUEUE, entry.run_id):
            break  # the broker is unavailable; the next call tries again
        OutboxEntry.objects.filter(run_id=entry.run_id).update(queue=SHARED_QUEUE, rung_at=now)
        sent += 1
    return sent
