"""Batched deletes: each batch is a short transaction, so that no other writer waits for long."""

from __future__ import annotations

from collections.abc import Callable

BATCH_SIZE = 500  # rows per transaction of a maintenance job


def run_in_batches(run_batch: Callable[[], int]) -> int:
    """Call `run_batch` until it processes fewer than BATCH_SIZE items; return the total."""
    total = count = run_batch()
    while count >= BATCH_SIZE:
        count = run_batch()
        total += count
    return total
