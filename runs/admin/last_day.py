"""Statistics of the last 24 hours: one SQL statement, cached for all open dashboards."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import CharField, Count, Sum
from django.db.models.functions import Cast, Substr

from decisions.presentation.formatting import duration
from runs.models import ACTIVE, TERMINAL, Run, RunStatus

CACHE_S = 15.0  # at least; a slow query is cached for a hundred times its duration
_ORDER = (RunStatus.FAILED, RunStatus.PARTIAL_SUCCESS, RunStatus.CANCELED, RunStatus.SUCCEEDED)


@dataclass(frozen=True, slots=True)
class Hour:
    """A column of the chart: the runs accepted in that hour, by status.

    Attributes:
        stack: Status, height in percent of the tallest column, and number of runs.
    """

    label: str
    total: int
    stack: Sequence[tuple[str, float, int]]


@dataclass(frozen=True, slots=True)
class LastDay:
    """The runs accepted in the last 24 hours."""

    accepted: int
    by_status: dict[str, int]
    steps: int
    mean: str
    success_share: int | None
    hours: Sequence[Hour]


class _Cache:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._value: LastDay | None = None
        self._until = 0.0

    def get(self) -> LastDay:
        with self._lock:
            started = time.monotonic()
            if self._value is None or started > self._until:
                self._value, ended = _count(datetime.now(UTC)), time.monotonic()
                self._until = ended + max(CACHE_S, 100 * (ended - started))
            return self._value


_cache = _Cache()
last_day = _cache.get


def _count(now: datetime) -> LastDay:
    since = (now - timedelta(hours=23)).replace(minute=0, second=0, microsecond=0)
    # The hour as text, 2026-11-21 22: both databases compute it from a timestamp without calling
    # Python for every row.
    rows = (
        Run.objects.filter(created_at__gte=since)
        .annotate(hour=Substr(Cast("created_at", CharField()), 1, 13))
        .values_list("hour", "status")
        .annotate(number=Count("id"), done=Sum("done_steps"), busy=Sum("active_ms"))
    )
    by_status: Counter[str] = Counter()
    by_hour: dict[str, Counter[str]] = {}
    steps = busy_ms = 0
    for hour, status, number, done, busy in rows:
        by_status[status] += number
        by_hour.setdefault(hour.replace("T", " "), Counter())[status] += number
        steps, busy_ms = steps + done, busy_ms + busy
    ended = sum(by_status[status] for status in TERMINAL)
    succeeded = by_status[RunStatus.SUCCEEDED]
    return LastDay(
        accepted=by_status.total(),
        by_status=dict(by_status),
        steps=steps,
        mean=duration(busy_ms / ended) if ended else "–",
        success_share=round(100 * succeeded / ended) if ended else None,
        hours=_hours(since, by_hour),
    )


def _hours(since: datetime, by_hour: dict[str, Counter[str]]) -> list[Hour]:
    tallest = max((counts.total() for counts in by_hour.values()), default=0)
    hours = []
    for number in range(24):
        at = since + timedelta(hours=number)
        counts = by_hour.get(at.strftime("%Y-%m-%d %H"), Counter())
        active = sum(counts[status] for status in ACTIVE)
        counts_by_status = [
            (" running", active),
            *((status.value, counts[status]) for status in _ORDER),
        ]
        stack = [(status, round(100 * n / tallest, 1), n) for status, n in counts_by_status if n]
        hours.append(Hour(f"{at:%H}:00 UTC", counts.total(), stack))
    return hours
