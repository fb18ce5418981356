"""Histograms of durations that can be added up: by the logarithm of the milliseconds.

A bucket is 10 % wide, so that a percentile is off by 5 % at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

_WIDTH = math.log(1.1)
Histogram = Mapping[str, int]  # bucket -> number; JSON has text as keys


def bucket_of(ms: float) -> str:
    """Return the bucket of a duration."""
    return str(round(math.log(max(1.0, ms)) / _WIDTH))


def percentile(histograms: Iterable[Histogram], share: float) -> float | None:
    """Return the duration in milliseconds that this share of all durations does not exceed; None
    without any.
    """
    counts: dict[int, int] = {}
    for histogram in histograms:
        for bucket, number in histogram.items():
            counts[int(bucket)] = counts.get(int(bucket), 0) + number
    left = share * sum(counts.values())
    for place in sorted(counts):
        left -= counts[place]
        if left <= 1e-9:
            return math.exp(place * _WIDTH)
    return None
