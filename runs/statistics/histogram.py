"""Histograms of durations that can be added up: by the logarithm of the milliseconds.

A bucket is 10 % wide, so that a percentile is off by 5 % at most.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

_WIDTH = math.log(1.1)
_ROUNDING = 1e-9
Histogram = Mapping[str, int]  # bucket -> number; JSON has text as keys


def bucket_of(ms: float) -> str:
    """Return the bucket of a duration."""
    return str(round(math.log(max(1.0, ms)) / _WIDTH))


def percentiles(
    histograms: Sequence[Histogram], shares: Sequence[float]
) -> tuple[float | None, ...]:
    """Return for each share the duration in milliseconds that this share of all durations does not
    exceed; None without any duration.
    """
    counts: Counter[str] = Counter()
    for histogram in histograms:
        counts.update(histogram)
    places = sorted((int(bucket), number) for bucket, number in counts.items())
    total = counts.total()
    return tuple(_duration_at(places, share * total) for share in shares)


def _duration_at(places: Sequence[tuple[int, int]], left: float) -> float | None:
    for place, number in places:
        left -= number
        if left <= _ROUNDING:
            return math.exp(place * _WIDTH)
    return None
