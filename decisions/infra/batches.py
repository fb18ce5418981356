"""Tidying in portions: each a short transaction of its own, so that nobody waits for it long."""

from __future__ import annotations

from collections.abc import Callable

BATCH_SIZE = 500  # rows that one transaction of a duty takes


def run_in_batches(do_some: Callable[[], int], *, full: int) -> int:
    """Do something in portions until one is not full; return how much was done."""
    done = some = do_some()
    while some >= full:
        some = do_some()
        done += some
    return done
