"""Measure our code against a floor: alternated rounds, medians and spreads, one JSON line."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

ROUNDS = 5


def alternate(
    variants: Mapping[str, Callable[[], float]], rounds: int = ROUNDS
) -> dict[str, list[float]]:
    """Measure every variant once a round, in turn (A B A B …), so that a drift of the machine
    affects all of them equally."""
    measurements: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, measure in variants.items():
            measurements[name].append(measure())
    return measurements


def spread(measurements: Sequence[float]) -> dict[str, float]:
    """Return min, median and max."""
    return {
        "min": round(min(measurements), 3),
        "median": round(statistics.median(measurements), 3),
        "max": round(max(measurements), 3),
    }


def ratio(ours: Sequence[float], floor: Sequence[float]) -> float:
    """Return the median of the ratios round by round."""
    return round(statistics.median(a / b for a, b in zip(ours, floor, strict=True)), 3)


def percentiles(durations: Sequence[float]) -> dict[str, float]:
    """Return p50 and p95 in milliseconds."""
    cuts = statistics.quantiles(durations, n=20)
    return {"p50": round(statistics.median(durations), 1), "p95": round(cuts[18], 1)}


def report(name: str, **values: Any) -> None:
    """Print the benchmark's one line."""
    print(json.dumps({"benchmark": name, **values}), flush=True)
