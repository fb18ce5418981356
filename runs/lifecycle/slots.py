"""Slots: each row is the right of one run to run, taken by compare-and-set."""

from __future__ import annotations

from django.conf import settings
from django.db import connection

from runs.models import Slot


def ensure_slots() -> None:
    """Insert the missing ones of the rows 0 to MAX_CONCURRENT_RUNS-1; safe to call from many
    processes at once.
    """
    Slot.objects.bulk_create(
        [Slot(number=number) for number in range(settings.MAX_CONCURRENT_RUNS)],
        ignore_conflicts=True,
    )


def take_slot(*, run_id: str, workspace_id: str, worker_id: str, epoch: int) -> int | None:
    """Take the lowest free slot for the run in the caller's transaction and return its number;
    None when all are taken.

    The statement's WHERE is the guard; on PostgreSQL concurrent callers do not wait for each other.
    """
    skip = "FOR UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""UPDATE runs_slot SET run_id = %s, workspace_id = %s, worker_id = %s, epoch = %s
                WHERE run_id IS NULL AND number = (
                    SELECT number FROM runs_slot WHERE run_id IS NULL AND number < %s
                    ORDER BY number LIMIT 1 {skip})
                RETURNING number""",  # noqa: S608  (only our own constant goes in)
            [run_id, workspace_id, worker_id, epoch, settings.MAX_CONCURRENT_RUNS],
        )
        taken = cursor.fetchone()
    return None if taken is None else int(taken[0])


def release_slot(run_id: str, *, epoch: int) -> bool:
    """Free the slot that the run took under this epoch; False where it had none."""
    freed = Slot.objects.filter(run_id=run_id, epoch=epoch).update(
        run_id=None, workspace_id=None, worker_id=None
    )
    return freed == 1


def count_free_slots() -> int:
    """Return how many runs could start now."""
    taken = Slot.objects.filter(run_id__isnull=False).count()
    return int(max(0, settings.MAX_CONCURRENT_RUNS - taken))
