"""How long to wait before a delivery is attempted again."""

from __future__ import annotations

import random

FIRST_DELAY_S = 15.0  # times four after each attempt: the eighth is 23 hours after the first
JITTER = 0.2


def retry_delay_s(attempt: int) -> float:
    """Return the seconds from this attempt to the next, with random jitter so that deliveries that
    failed together are not retried together.
    """
    jitter = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  (not a secret)
    return FIRST_DELAY_S * 4.0 ** (attempt - 1) * jitter
