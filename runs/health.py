"""What tells whether the installation works: workers that beat, runs by status, slots, doorbells.
Of all workspaces.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.db.models import Count, Min, Q

from runs.models import OutboxEntry, Run, RunStatus, Slot, Worker
from runs.processes import is_gone


@dataclass(frozen=True, slots=True)
class Census:
    """Numbers of the whole installation at one moment."""

    runs: dict[str, int]
    slots_taken: int
    slots: int
    workers: int
    doorbells: int
    oldest_doorbell_s: float


class WorkerSense:
    """Tells living workers by their beats, over time and by this process's own clock (mechanisms
    5).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[int, float]] = {}

    def count_living(self) -> int:
        """Return how many workers beat within the last LEASE_LOST_S, as far as this process has
        watched them.
        """
        rows = Worker.objects.filter(lost_at__isnull=True).values_list("id", "beat", "process")
        beats = {worker_id: beat for worker_id, beat, process in rows if not is_gone(process)}
        now = time.monotonic()
        with self._lock:
            self._seen = {
                worker_id: known
                if (known := self._seen.get(worker_id)) and known[0] == beat
                else (beat, now)
                for worker_id, beat in beats.items()
            }
            return sum(now - since < settings.LEASE_LOST_S for _, since in self._seen.values())


_sense = WorkerSense()


def count_living_workers() -> int:
    """Return how many worker processes take runs; one query."""
    return _sense.count_living()


def take_census() -> Census:
    """Count what /metrics shows; five queries, each over an index."""
    counted = dict.fromkeys(RunStatus.values, 0)
    counted |= dict(Run.objects.order_by().values_list("status").annotate(Count("id")))
    slots = Slot.objects.aggregate(
        all=Count("number"), taken=Count("number", Q(run_id__isnull=False))
    )
    bells = OutboxEntry.objects.aggregate(all=Count("run_id"), oldest=Min("rung_at"))
    waited = (datetime.now(UTC) - bells["oldest"]).total_seconds() if bells["oldest"] else 0.0
    return Census(
        runs=counted,
        slots_taken=slots["taken"],
        slots=slots["all"],
        workers=count_living_workers(),
        doorbells=bells["all"],
        oldest_doorbell_s=max(0.0, waited),
    )
