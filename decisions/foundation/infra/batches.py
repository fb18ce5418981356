"""Batched deletes: each batch is a short transaction, so that no other writer waits for long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet

BATCH_SIZE = 500  # rows per transaction of a maintenance job


def run_in_batches(run_batch: Callable[[], int]) -> int:
    """Call `run_batch` until it processes fewer than BATCH_SIZE items; return the total."""
    total = count = run_batch()
    while count >= BATCH_SIZE:
        count = run_batch()
        total += count
    return total


def delete_in_batches(rows: QuerySet[Any]) -> int:
    """Delete the rows; return how many, with those that were deleted with them. Commits."""

    def delete_batch() -> int:
        return rows.filter(pk__in=list(rows.values_list("pk", flat=True)[:BATCH_SIZE])).delete()[0]

    return run_in_batches(delete_batch)
