"""Read the statistics as series for plots: one value per period of a time range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings

from decisions.foundation.infra.clock import to_ms
from runs.models import RunStatistic, RunStatus
from runs.statistics.histogram import percentiles
from runs.statistics.periods import ALL, OTHER, start_of

SHARES = (0.5, 0.95)  # of the durations that are drawn: p50 and p95
WINDOW = 4  # points whose runs make a failure rate
SHOWN = 6  # templates, or kinds of steps; the rest is one series
STATUSES = (
    RunStatus.SUCCEEDED,
    RunStatus.PARTIAL_SUCCESS,
    RunStatus.FAILED,
    RunStatus.CANCELED,
)
Row = Mapping[str, Any]
Values = list[float | None]


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A time range of the plots.

    Attributes:
        step_s: the resolution of the points, and of the rows that are read.
    """

    name: str
    length: timedelta
    step_s: int


RANGES = {
    one.name: one
    for one in (
        TimeRange("1h", timedelta(hours=1), 60),
        TimeRange("6h", timedelta(hours=6), 300),
        TimeRange("24h", timedelta(hours=24), 900),
        TimeRange("7d", timedelta(days=7), 7200),
        TimeRange("30d", timedelta(days=30), 21600),
    )
}


@dataclass(frozen=True, slots=True)
class Periods:
    """The rows of a time range, grouped by the points of its plots."""

    step_s: int
    starts: Sequence[datetime]
    rows: Sequence[Sequence[Row]]

    def each(self, value: Callable[[Sequence[Row]], float | None]) -> Values:
        """Return a value for each point."""
        return [value(rows) for rows in self.rows]

    def sums(self, name: str) -> list[int]:
        """Return the sum of a column for each point."""
        return [sum(row[name] for row in rows) for rows in self.rows]


def statistics(
    range_name: str, *, workspace_id: str = ALL, template_id: str = ALL
) -> dict[str, Any]:
    """Return all series of a time range, for one workspace or template, or all; three queries by
    an index, whatever the number of runs.
    """
    chosen = RANGES[range_name]
    now = datetime.now(UTC)
    columns = [field.name for field in RunStatistic._meta.fields if field.name != "id"]
    periods = _read(chosen, now, workspace_id, template_id, columns)
    load = (
        periods
        if workspace_id == template_id == ALL
        else _read(chosen, now, ALL, ALL, ["at", "sampled_ms"])
    )
    return {
        "range": chosen.name,
        "stepS": chosen.step_s,
        "times": [to_ms(start) for start in periods.starts],
        "runs": {str(status): periods.sums(str(status)) for status in STATUSES},
        "duration": _percentiles(periods, "durations"),
        "wait": _percentiles(periods, "waits")
        | {"oldest": periods.each(lambda rows: max((row["oldest_ms"] for row in rows), default=0))},
        "failureRate": _failure_rates(chosen, now, workspace_id, template_id),
        "steps": _steps(periods),
        "pages": _per_hour(periods, "pages"),
        "tokens": {
            "input": _per_hour(periods, "input_tokens"),
            "output": _per_hour(periods, "output_tokens"),
        },
        "cost": [micro / 1_000_000 for micro in periods.sums("cost_micro_usd")],
        "slots": _slots(periods, load),
    }


def summary(length: timedelta = timedelta(hours=24)) -> dict[str, Any]:
    """Return {ended, by_status, steps, mean_ms, success_share} of the runs accepted lately; one
    query.
    """
    since = start_of(datetime.now(UTC) - length, 900)
    rows = list(
        RunStatistic.objects.filter(
            resolution_s=900, workspace_id=ALL, template_id=ALL, at__gte=since
        ).values("active_ms", "steps", *STATUSES)
    )
    by_status = {str(status): sum(row[status] for row in rows) for status in STATUSES}
    ended = sum(by_status.values())
    busy_ms = sum(row["active_ms"] for row in rows)
    return {
        "ended": ended,
        "by_status": by_status,
        "steps": sum(sum(row["steps"].values()) for row in rows),
        "mean_ms": busy_ms / ended if ended else None,
        "success_share": round(100 * by_status["succeeded"] / ended) if ended else None,
    }


def _read(
    chosen: TimeRange, now: datetime, workspace_id: str, template_id: str, columns: Sequence[str]
) -> Periods:
    starts = _starts(chosen, now)
    found = RunStatistic.objects.filter(
        resolution_s=chosen.step_s,
        workspace_id=workspace_id,
        template_id=template_id,
        at__gte=starts[0],
    ).values(*columns)
    return Periods(chosen.step_s, starts, _grouped(found, starts, chosen.step_s))


def _starts(chosen: TimeRange, now: datetime) -> list[datetime]:
    last = start_of(now, chosen.step_s)
    number = int(chosen.length.total_seconds()) // chosen.step_s
    return [last - timedelta(seconds=chosen.step_s * left) for left in reversed(range(number))]


def _grouped(rows: Iterable[Row], starts: Sequence[datetime], step_s: int) -> list[list[Row]]:
    grouped: list[list[Row]] = [[] for _ in starts]
    for row in rows:
        place = int((row["at"] - starts[0]).total_seconds()) // step_s
        if 0 <= place < len(grouped):
            grouped[place].append(row)
    return grouped


def _percentiles(periods: Periods, name: str) -> dict[str, Values]:
    found = [percentiles([row[name] for row in rows], SHARES) for rows in periods.rows]
    return {
        f"p{round(100 * share)}": list(one)
        for share, one in zip(SHARES, zip(*found, strict=True), strict=True)
    }


def _failure_rates(
    chosen: TimeRange, now: datetime, workspace_id: str, template_id: str
) -> dict[str, Values]:
    """Return the percentage of failed runs by template: of those with the most runs."""
    starts = _starts(chosen, now)
    rows = RunStatistic.objects.filter(
        resolution_s=chosen.step_s, workspace_id=workspace_id, at__gte=starts[0]
    )
    rows = rows.filter(template_id=template_id) if template_id else rows.exclude(template_id=ALL)
    by_template: dict[str, list[Row]] = {}
    numbers: Counter[str] = Counter()
    for row in rows.values("at", "template_id", *STATUSES):
        by_template.setdefault(row["template_id"], []).append(row)
        numbers[row["template_id"]] += sum(row[status] for status in STATUSES)
    shown = [name for name, number in numbers.most_common(SHOWN) if number]
    return {
        name: _failed_shares(_grouped(by_template[name], starts, chosen.step_s)) for name in shown
    }


def _failed_shares(rows: Sequence[Sequence[Row]]) -> Values:
    """Return the share of each point and of the WINDOW - 1 before it: a share of few runs jumps."""
    windows = (rows[max(0, place + 1 - WINDOW) : place + 1] for place in range(len(rows)))
    return [_failed_share([row for some in window for row in some]) for window in windows]


def _failed_share(rows: Sequence[Row]) -> float | None:
    ended = sum(row[status] for row in rows for status in STATUSES)
    return round(100 * sum(row["failed"] for row in rows) / ended, 1) if ended else None


def _steps(periods: Periods) -> dict[str, list[int]]:
    counts = [Counter[str]() for _ in periods.rows]
    for count, rows in zip(counts, periods.rows, strict=True):
        for row in rows:
            count.update(row["steps"])
    total = sum(counts, Counter[str]())
    shown = [kind for kind, _ in total.most_common(SHOWN)]
    series = {kind: [count[kind] for count in counts] for kind in shown}
    rest = [count.total() - sum(count[kind] for kind in shown) for count in counts]
    return series | ({OTHER: rest} if any(rest) else {})


def _per_hour(periods: Periods, name: str) -> list[float]:
    return [round(number * 3600 / periods.step_s, 1) for number in periods.sums(name)]


def _slots(periods: Periods, load: Periods) -> dict[str, Any]:
    """Return the mean number of taken slots while the load was observed, and how many there are."""
    taken, sampled = periods.sums("slot_ms"), load.sums("sampled_ms")
    used = [
        round(slot_ms / sampled_ms, 2) if sampled_ms else None
        for slot_ms, sampled_ms in zip(taken, sampled, strict=True)
    ]
    queued = periods.each(lambda rows: max((row["queued"] for row in rows), default=0))
    return {"used": used, "queued": queued, "total": settings.MAX_CONCURRENT_RUNS}
