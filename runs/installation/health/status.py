"""What tells whether the installation works: workers that beat, runs by status, slots, doorbells,
what waits for people, webhooks and the sealer. Of all workspaces.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, Min, Q

from decisions.audit.sealer import unsealed_backlog
from decisions.infra.processes import has_ended
from decisions.models import Confirmation, ConfirmationStatus
from runs.models import OutboxEntry, Slot, WebhookDelivery, Worker
from runs.models.webhooks import DeliveryStatus
from runs.queries.totals import totals_by_status
from runs.queue.dispatch_order import WAITING, WAITING_WORKSPACES

# More than this many waiting runs are not counted: a scrape reads no more of the index than that.
COUNTED_AT_MOST = 10_000
_QUEUE = f"""{WAITING_WORKSPACES}
    SELECT
        (SELECT COUNT(*) FROM (SELECT 1 FROM runs_run WHERE {WAITING} LIMIT {COUNTED_AT_MOST}) r),
        (SELECT MIN((SELECT created_at FROM runs_run WHERE {WAITING} AND status = 'queued'
                     AND workspace_id = waiting.workspace_id ORDER BY created_at LIMIT 1))
         FROM waiting)"""  # noqa: S608  (only our own constants go in)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits: how many, and for how long the oldest has; 0 where none does."""

    number: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class InstallationStatus:
    """Numbers of the whole installation at one moment.

    Attributes:
        runs: by template and status: how many the API shows, and how many ever came into it.
        queue: runs that a worker could take, were there a free slot; the oldest that never began.
        doorbells: that no worker has answered.
        deliveries: of webhooks, those that are due.
    """

    runs: Mapping[tuple[str, str], tuple[int, int]]
    queue: Backlog
    slots_taken: int
    slots: int
    workers: Sequence[str]
    doorbells: Backlog
    confirmations: Backlog
    deliveries: Backlog
    unsealed: Backlog


class LiveWorkers:
    """Tells living workers by their beats, over time and by this process's own clock (mechanisms
    5).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[int, float]] = {}

    def list_live(self) -> list[str]:
        """Return the workers that beat within the last LEASE_LOST_S, as far as this process has
        watched them.
        """
        rows = Worker.objects.filter(lost_at__isnull=True).values_list("id", "beat", "process")
        beats = {worker_id: beat for worker_id, beat, process in rows if not has_ended(process)}
        now = time.monotonic()
        with self._lock:
            self._seen = {
                worker_id: known
                if (known := self._seen.get(worker_id)) and known[0] == beat
                else (beat, now)
                for worker_id, beat in beats.items()
            }
            return [
                worker_id
                for worker_id, (_, since) in self._seen.items()
                if now - since < settings.LEASE_LOST_S
            ]


_sense = LiveWorkers()


def count_live_workers() -> int:
    """Return how many worker processes take runs; one query."""
    return len(_sense.list_live())


def read_installation_status() -> InstallationStatus:
    """Count what /metrics shows; eight queries, none of which reads more than an index has of what
    waits or is under way.
    """
    now = datetime.now(UTC)
    slots = Slot.objects.aggregate(
        all=Count("number"), taken=Count("number", Q(run_id__isnull=False))
    )
    waiting = Confirmation.objects.filter(status=ConfirmationStatus.WAITING, expires_at__gt=now)
    due = WebhookDelivery.objects.filter(status=DeliveryStatus.PENDING, next_try_at__lte=now)
    return InstallationStatus(
        runs=totals_by_status(),
        queue=_queue(now),
        slots_taken=slots["taken"],
        slots=slots["all"],
        workers=_sense.list_live(),
        doorbells=_backlog(OutboxEntry.objects.all(), "rung_at", now),
        confirmations=_backlog(waiting, "created_at", now),
        deliveries=_backlog(due, "next_try_at", now),
        unsealed=backlog_of(*unsealed_backlog(COUNTED_AT_MOST), now),
    )


def backlog_of(number: int, oldest: datetime | None, now: datetime) -> Backlog:
    """Return a backlog by when its oldest came."""
    return Backlog(number, max(0.0, (now - oldest).total_seconds()) if oldest else 0.0)


def _backlog(rows: Any, since: str, now: datetime) -> Backlog:
    found = rows.order_by().aggregate(number=Count("pk"), oldest=Min(since))
    return backlog_of(found["number"], found["oldest"], now)


def _queue(now: datetime) -> Backlog:
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE)
        number, oldest = cursor.fetchone()
    if isinstance(oldest, str):  # SQLite has no type for it
        oldest = datetime.fromisoformat(oldest).replace(tzinfo=UTC)
    return backlog_of(number, oldest, now)
