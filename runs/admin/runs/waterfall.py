"""A run's steps as bars on a common time axis. Pure: rows in, percentages out."""

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
_THINNEST = 0.4  # percent
_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440)


@dataclass(frozen=True, slots=True)
class Bar:
    """A step; `left` and `width` are percent of the axis, None where it has no place there.

    Attributes:
        tone: how it is coloured: as its status, but for one whose call failed without failing it.
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
    taken_over: bool
    error: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the axis, labelled with the time since the run began."""

    left: float
    label: str


@dataclass(frozen=True, slots=True)
class Waterfall:
    """What is drawn; `host` is told once where most names have it, and left out of their labels."""

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

    Steps that a retry took over ended before the new run was made: they have no bar. Those that
    were under way when the run ended reach to its end.
    """
    now = ended_at or now
    host = _usual_host(steps)
    axis = _axis([step for step in steps if not _taken_over(step, created_at)], began_at, now)
    bars = [
        _bar(
            step,
            None if _taken_over(step, created_at) else axis,
            now=now,
            host=host,
            status=status_word(step.status, over=ended_at is not None),
        )
        for step in steps
    ]
    return Waterfall(bars, _ticks(axis, began_at or axis.first) if axis else [], host)


def status_word(status: str, *, over: bool) -> str:
    """Return a step's status as the page tells it: what a run left behind at its end is not under
    way.
    """
    left = {StepStatus.STARTED: "interrupted", StepStatus.PENDING: "not done"}
    return left.get(StepStatus(status), status) if over else status


def _usual_host(steps: Sequence[RunStep]) -> str:
    """Return the scheme and host that most of the steps have in their names, or nothing."""
    found = (_ORIGIN.search(step.name) for step in steps)
    usual = Counter(match.group() for match in found if match).most_common(1)
    host, number = usual[0] if usual else ("", 0)
    return host if number > max(1, len(steps) / 2) else ""


def _taken_over(step: RunStep, created_at: datetime) -> bool:
    return step.ended_at is not None and step.ended_at < created_at


def _axis(steps: Sequence[RunStep], began_at: datetime | None, now: datetime) -> _Axis | None:
    """Return the axis from the first start to the last end; None while nothing has started."""
    starts = [step.started_at for step in steps if step.started_at]
    if not starts:
        return None
    # A clock that was set back may have put an end before its start.
    last = max(*starts, *(step.ended_at or now for step in steps if step.started_at))
    first = min(starts)
    if began_at and began_at < first and _ms(first - began_at) < _ms(last - first) / 4:
        first = began_at  # the first page of steps begins where the run did
    return _Axis(first, max(1.0, _ms(last - first)))


def _bar(step: RunStep, axis: _Axis | None, *, now: datetime, host: str, status: str) -> Bar:
    took = left = width = None
    if step.started_at is not None:
        until = max(step.started_at, step.ended_at or now)
        took = duration(_ms(until - step.started_at))
        if axis is not None:
            left = round(min(axis.percent(step.started_at), 100 - _THINNEST), 2)
            width = round(max(_THINNEST, axis.percent(until) - left), 2)
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
        taken_over=took is not None and axis is None,
        error=step.error,
    )


def _label_of(name: str, host: str) -> str:
    """Return the name without the usual host; http://h:1 is not the host of http://h:12/."""
    if not host or host not in name:
        return name
    before, _, rest = name.partition(host)
    return before + (rest or "/") if rest[:1] in ("", "/") else name


def _ticks(axis: _Axis, began_at: datetime) -> list[Tick]:
    """Return marks at round times since the run began."""
    offset = _ms(axis.first - began_at)
    every = _round_up(axis.span_ms / _TICKS)
    at = -(-offset // every) * every
    ticks = []
    while at <= offset + axis.span_ms:
        ticks.append(Tick(round(100 * (at - offset) / axis.span_ms, 2), _label(at)))
        at += every
    return ticks


def _round_up(least_ms: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, … ms; the next round number of minutes from 20 s on."""
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
