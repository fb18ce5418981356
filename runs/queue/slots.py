"""Slots: each row is the right of one run to run, taken by compare-and-set."""

from __future__ import annotations

from django.conf import settings

from runs.models import Slot


def ensure_slots() -> None:
    """Insert the missing ones of the rows 0 to MAX_CONCURRENT_RUNS-1; safe to call from many
    processes at once.
    """
    Slot.objects.bulk_create(
        [Slot(number=number) for number in range(settings.MAX_CONCURRENT_RUNS)],
        ignore_conflicts=True,
    )


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
