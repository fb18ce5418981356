"""The outbox: a doorbell that must ring is a row in the transaction of the run it rings for
(reliability rule 1).
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

QUIET_S = 5.0  # after a broker that hung nobody waits for it for this long
log = logging.getLogger(__name__)


class _Broker:
    """What this process knows of the broker."""

    quiet_until = 0.0


_broker = _Broker()


def queue_of(run: Run) -> str:
    """Return the queue that rings for a run: the own one of the worker that holds its session."""
    worker_id = run.pinned_worker
    if not run.owns_session:
        lease = BrowserSession.objects.filter(id=run.session_id, worker_id__isnull=False)
        worker_id = lease.values_list("worker_id", flat=True).first() or worker_id
    return worker_queue(worker_id) if worker_id else SHARED_QUEUE


def outbox_entry(run: Run, queue: str) -> OutboxEntry:
    """Return the unsaved doorbell of a run."""
    return OutboxEntry(run_id=run.id, queue=queue, rung_at=datetime.now(UTC))


def put(run: Run) -> None:
    """Write the doorbell in the caller's transaction and ring it after the commit."""
    queue = queue_of(run)
    OutboxEntry.objects.bulk_create(
        [outbox_entry(run, queue)],
        update_conflicts=True,
        unique_fields=["run_id"],
        update_fields=["queue", "rung_at"],
    )
    send_wakeup_after_commit(queue, run.id)


def send_wakeup_after_commit(queue: str, run_id: str) -> None:
    """Ring once the caller's transaction has committed; a broker that is down is the sweeper's
    matter.
    """
    transaction.on_commit(lambda: send_wakeup(queue, run_id), robust=True)


def worker_queue(worker_id: str) -> str:
    """Return the name of a worker's own queue."""
    return f"runs.{worker_id}"


def send_wakeup(queue: str, run_id: str) -> bool:
    """Ring now; tell whether the broker took it."""
    hit("before_ring")
    began = time.monotonic()
    if began < _broker.quiet_until:
        return False
    doorbell: Callable[[str, str], None] = import_string(settings.CONTINUITY_DOORBELL)
    try:
        doorbell(queue, run_id)
    except Exception as error:  # noqa: BLE001  (any broker trouble: the row stays and rings again)
        log.warning("the broker does not take doorbells; the sweeper rings again: %s", error)
        if time.monotonic() - began > 1.0:
            _broker.quiet_until = time.monotonic() + QUIET_S
        return False
    return True


def resend_wakeups() -> int:
    """Ring, on the shared queue, for runs that nobody claimed SWEEP_AFTER_S after the last ring;
    return how many.

    No more than there are free slots: whoever gives a slot back looks for work by itself. A clock
    that jumped only makes a bell ring early. Two sweepers at once ring twice, which is harmless.
    """
    now = datetime.now(UTC)
    after = timedelta(seconds=settings.SWEEP_AFTER_S)
    unheard = OutboxEntry.objects.exclude(rung_at__range=(now - after, now + after))
    rung = 0
    for entry in unheard.order_by("rung_at")[: count_free_slots()]:
        mark_received()  # each of these rings: the bell that was to ring for all of them was not heard
        if not send_wakeup(SHARED_QUEUE, entry.run_id):
            break  # a broker that is down is asked again at the next sweep
        OutboxEntry.objects.filter(run_id=entry.run_id).update(queue=SHARED_QUEUE, rung_at=now)
        rung += 1
    return rung
