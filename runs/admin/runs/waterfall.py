"""The timeline of a run: its steps as bars on a common time axis, in percent. Runs no queries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from decisions.presentation.formatting import duration
from runs.models import RunStep, StepStatus

_ORIGIN = re.compile(r"https?://[^/\s]+")
_TICKS = 6
_MIN_WIDTH = 0.4  # percent
_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440)


@dataclass(frozen=True, slots=True)
class Bar:
    """A step on the axis.

    Attributes:
        tone: The colour: the status, or `failed` for a succeeded step whose tool call failed.
        left: Start in percent of the axis; None for a step without a bar.
        width: Length in percent of the axis; None for a step without a bar.
    """

    index: int
    name: str
    label: str
    title: str
    status: str
    tone: str
    attempts: int
    left: float | None
    width: float | None
    took: str
    is_reused: bool
    error: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the axis, labelled with the time since the run's start."""

    left: float
    label: str


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The timeline.

    Attributes:
        host: The origin that most step names contain; it is left out of their labels.
    """

    bars: Sequence[Bar]
    ticks: Sequence[Tick]
    host: str


@dataclass(frozen=True, slots=True)
class _Axis:
    first: datetime
    span_ms: float

    def percent(self, at: datetime) -> float:
        return 100 * _ms(at - self.first) / self.span_ms


def draw(
    steps: Sequence[RunStep],
    *,
    created_at: datetime,
    began_at: datetime | None,
    ended_at: datetime | None,
    now: datetime,
) -> Waterfall:
    """Return the steps as bars.

    Steps that a retry reuses ended before the new run was created: they have no bar. The bar of a
    step that was running when the run ended reaches to the run's end.
    """
    now = ended_at or now
    host = _common_host(steps)
    axis = _axis([step for step in steps if not _is_reused(step, created_at)], began_at, now)
    bars = [
        _bar(
            step,
            None if _is_reused(step, created_at) else axis,
            now=now,
            host=host,
            status=status_word(step.status, has_ended=ended_at is not None),
        )
        for step in steps
    ]
    return Waterfall(bars, _ticks(axis, began_at or axis.first) if axis else [], host)


def status_word(status: str, *, has_ended: bool) -> str:
    """Return the word for a step's status; an unfinished step of an ended run is not running."""
    words = {StepStatus.STARTED: "interrupted", StepStatus.PENDING: "not done"}
    return words.get(StepStatus(status), status) if has_ended else status


def _common_host(steps: Sequence[RunStep]) -> str:
    """Return the origin that most step names contain, or an empty string."""
    found = (_ORIGIN.search(step.name) for step in steps)
    most_common = Counter(match.group() for match in found if match).most_common(1)
    host, number = most_common[0] if most_common else ("", 0)
    return host if number > max(1, len(steps) / 2) else ""


def _is_reused(step: RunStep, created_at: datetime) -> bool:
    return step.ended_at is not None and step.ended_at < created_at


def _axis(steps: Sequence[RunStep], began_at: datetime | None, now: datetime) -> _Axis | None:
    """Return the axis from the first start to the last end; None if no step has started."""
    starts = [step.started_at for step in steps if step.started_at]
    if not starts:
        return None
    # If a clock was set back, an end can lie before its start.
    last = max(*starts, *(step.ended_at or now for step in steps if step.started_at))
    first = min(starts)
    if began_at and began_at < first and _ms(first - began_at) < _ms(last - first) / 4:
        first = began_at  # the first page starts with the run
    return _Axis(first, max(1.0, _ms(last - first)))


def _bar(step: RunStep, axis: _Axis | None, *, now: datetime, host: str, status: str) -> Bar:
    took = left = width = None
    if step.started_at is not None:
        end = max(step.started_at, step.ended_at or now)
        took = duration(_ms(end - step.started_at))
        if axis is not None:
            left = round(min(axis.percent(step.started_at), 100 - _MIN_WIDTH), 2)
            width = round(max(_MIN_WIDTH, axis.percent(end) - left), 2)
    failed_call = getattr(step, "failed_call", None)
    return Bar(
        index=step.index,
        name=step.name,
        label=_label_of(step.name, host),
        title=getattr(step, "title", None) or failed_call or "",
        status=status,
        tone=status if failed_call is None else StepStatus.FAILED,
        attempts=step.attempts,
        left=left,
        width=width,
        took=took or "",
        is_reused=took is not None and axis is None,
        error=step.error,
    )


def _label_of(name: str, host: str) -> str:
    """Return the name without the common origin; http://h:1 is not the origin of http://h:12/."""
    if not host or host not in name:
        return name
    before, _, rest = name.partition(host)
    return before + (rest or "/") if rest[:1] in ("", "/") else name


def _ticks(axis: _Axis, began_at: datetime) -> list[Tick]:
    """Return marks at round times since the run's start."""
    offset = _ms(axis.first - began_at)
    interval = _round_up(axis.span_ms / _TICKS)
    at = -(-offset // interval) * interval
    ticks = []
    while at <= offset + axis.span_ms:
        ticks.append(Tick(round(100 * (at - offset) / axis.span_ms, 2), _label(at)))
        at += interval
    return ticks


def _round_up(least_ms: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, … ms, or above 20 s the next round number of minutes."""
    for minutes in _MINUTES:
        if 20_000 < least_ms <= minutes * 60_000:
            return minutes * 60_000.0
    power = 1.0
    while True:
        for step in (1, 2, 5):
            if step * power >= least_ms:
                return step * power
        power *= 10


def _label(milliseconds: float) -> str:
    seconds = milliseconds / 1000
    if abs(seconds) < 60:
        return f"{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} min" if rest else f"{minutes} min"


def _ms(span: timedelta) -> float:
    return span.total_seconds() * 1000
