"""The timeline of a run: its steps as bars on a common axis of worked time, in percent. The waits
for a person are narrow gaps in it. Runs no queries.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from decisions.foundation.presentation.formatting import duration
from runs.admin.runs.waits import Wait
from runs.models import RunStep, StepStatus

_ORIGIN = re.compile(r"https?://[^/\s]+")
_TICKS = 6
_MIN_WIDTH = 0.4  # percent
_WAIT_SHARE, _WAITS_SHARE = 0.1, 0.3  # of the worked time: the width of one wait, and of all
_NUMBERED = re.compile(r"^(\d+)\. (?=\S)")
_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440)


@dataclass(frozen=True, slots=True)
class Bar:
    """A step on the axis.

    Attributes:
        tone: The colour: the status, or `failed` for a succeeded step whose tool call failed.
        left: Start in percent of the axis; None for a step without a bar.
        width: Length in percent of the axis; None for a step without a bar.
        took: How long the step worked, without the waits in it.
        kind: What a step of an agent is: `turn`, `call`, `page` or `summary`; else empty.
    """

    index: int
    kind: str
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
class Gap:
    """A wait on the axis, and the row that describes it."""

    left: float
    width: float
    took: str
    wait: Wait


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the axis, labelled with the time that the run had worked."""

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
    gaps: Sequence[Gap] = ()
    rows: Sequence[Bar | Gap] = ()


@dataclass(frozen=True, slots=True)
class _Break:
    """A wait in milliseconds from the axis' start; `shown_ms` is the length that it has on it."""

    start_ms: float
    end_ms: float
    shown_ms: float


@dataclass(frozen=True, slots=True)
class _Axis:
    """The axis from the first start to the last end; `worked_ms` is without the waits."""

    first: datetime
    worked_ms: float
    breaks: Sequence[_Break] = ()

    def percent(self, at: datetime) -> float:
        """Return the place of a time."""
        at_ms = _ms(at - self.first)
        hidden = 0.0
        for gap in self.breaks:
            share = min(1.0, max(0.0, at_ms - gap.start_ms) / max(1.0, gap.end_ms - gap.start_ms))
            hidden += share * (gap.end_ms - gap.start_ms - gap.shown_ms)
        return 100 * (at_ms - hidden) / self._shown_ms

    def percent_worked(self, worked_ms: float) -> float:
        """Return the place at which the run had worked this long."""
        at_ms, waited = worked_ms, 0.0
        for gap in self.breaks:
            if gap.start_ms - waited < worked_ms:
                at_ms += gap.shown_ms
            waited += gap.end_ms - gap.start_ms
        return 100 * at_ms / self._shown_ms

    @property
    def _shown_ms(self) -> float:
        return max(1.0, self.worked_ms + sum(gap.shown_ms for gap in self.breaks))


def draw(
    steps: Sequence[RunStep],
    *,
    created_at: datetime,
    began_at: datetime | None,
    ended_at: datetime | None,
    now: datetime,
    waits: Sequence[Wait] = (),
) -> Waterfall:
    """Return the steps as bars.

    Steps that a retry reuses ended before the new run was created: they have no bar. The bar of a
    step that was running when the run ended reaches to the run's end.
    """
    now = ended_at or now
    host = _common_host(steps)
    ends = [_end_of(step, waits, now) for step in steps]
    spans = [
        (step.started_at, end)
        for step, end in zip(steps, ends, strict=True)
        if step.started_at is not None and not _is_reused(step, created_at)
    ]
    axis = _axis(spans, began_at, waits, now)
    bars = [
        _bar(
            step,
            None if _is_reused(step, created_at) else axis,
            end=end,
            waits=waits,
            host=host,
            status=status_word(step.status, has_ended=ended_at is not None),
        )
        for step, end in zip(steps, ends, strict=True)
    ]
    if axis is None:
        return Waterfall(bars, [], host, rows=bars)
    gaps = [gap for gap in (_gap(wait, axis, now) for wait in waits) if gap is not None]
    ticks = _ticks(axis, began_at or axis.first)
    return Waterfall(bars, ticks, host, gaps, _rows(bars, steps, gaps))


def _end_of(step: RunStep, waits: Sequence[Wait], now: datetime) -> datetime:
    """Return when a step ended or stopped to wait; now if it works."""
    if step.ended_at is not None:
        return step.ended_at
    if waits and waits[-1].ended_at is None and step.status == StepStatus.PENDING:
        return min(now, waits[-1].began_at)
    return now


def _rows(
    bars: Sequence[Bar], steps: Sequence[RunStep], gaps: Sequence[Gap]
) -> Sequence[Bar | Gap]:
    """Return the bars with each wait before the first step that started after it began."""
    rows: list[Bar | Gap] = []
    left = list(gaps)
    for bar, step in zip(bars, steps, strict=True):
        while left and (step.started_at is None or step.started_at >= left[0].wait.began_at):
            rows.append(left.pop(0))
        rows.append(bar)
    return [*rows, *left]


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


def _axis(
    steps: Sequence[tuple[datetime, datetime]],
    began_at: datetime | None,
    waits: Sequence[Wait],
    now: datetime,
) -> _Axis | None:
    """Return the axis from the first start to the last end; None if no step has started."""
    if not steps:
        return None
    # If a clock was set back, an end can lie before its start.
    first, last = min(start for start, _ in steps), max(max(step) for step in steps)
    if began_at and began_at < first and _ms(first - began_at) < _ms(last - first) / 4:
        first = began_at  # the first page starts with the run
    if waits and waits[-1].ended_at is None and waits[-1].began_at >= first:
        last = max(last, now)  # the page with the last steps ends with the open wait
    spans = [
        (_ms(max(first, wait.began_at) - first), _ms(min(last, wait.ended_at or now) - first))
        for wait in waits
    ]
    spans = [(start, end) for start, end in spans if start < end]
    worked_ms = max(1.0, _ms(last - first) - sum(end - start for start, end in spans))
    at_most = worked_ms * min(_WAIT_SHARE, _WAITS_SHARE / max(1, len(spans)))
    breaks = [_Break(start, end, min(end - start, at_most)) for start, end in spans]
    return _Axis(first, worked_ms, breaks)


def _gap(wait: Wait, axis: _Axis, now: datetime) -> Gap | None:
    """Return a wait as a gap; None if it lies outside of the axis."""
    left = max(0.0, axis.percent(wait.began_at))
    right = min(100.0, axis.percent(wait.ended_at or now))
    if left >= right:
        return None
    return Gap(round(left, 2), round(right - left, 2), duration(wait.milliseconds(now)), wait)


def _bar(
    step: RunStep,
    axis: _Axis | None,
    *,
    end: datetime,
    waits: Sequence[Wait],
    host: str,
    status: str,
) -> Bar:
    took = left = width = None
    if step.started_at is not None:
        end = max(step.started_at, end)
        took = duration(_ms(end - step.started_at) - _waited_in(step.started_at, end, waits))
        if axis is not None:
            left = round(min(axis.percent(step.started_at), 100 - _MIN_WIDTH), 2)
            width = round(max(_MIN_WIDTH, axis.percent(end) - left), 2)
    failed_call = getattr(step, "failed_call", None)
    return Bar(
        index=step.index,
        kind=getattr(step, "kind", None) or "",
        name=step.name,
        label=_label_of(_unnumbered(step), host),
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


def _waited_in(start: datetime, end: datetime, waits: Sequence[Wait]) -> float:
    """Return the milliseconds between two times in which the run waited."""
    parts = (_ms(min(end, wait.ended_at or end) - max(start, wait.began_at)) for wait in waits)
    return sum(max(0.0, part) for part in parts)


def _unnumbered(step: RunStep) -> str:
    """Return the step's name without its own number, which the timeline shows beside it."""
    number = _NUMBERED.match(step.name)
    is_same = number is not None and int(number.group(1)) == step.index + 1
    return step.name[number.end() :] if number is not None and is_same else step.name


def _label_of(name: str, host: str) -> str:
    """Return the name without the common origin; http://h:1 is not the origin of http://h:12/."""
    if not host or host not in name:
        return name
    before, _host, rest = name.partition(host)
    return before + (rest or "/") if rest[:1] in ("", "/") else name


def _ticks(axis: _Axis, began_at: datetime) -> list[Tick]:
    """Return marks at round times of the run's work."""
    offset = _ms(axis.first - began_at)
    interval = _round_up(axis.worked_ms / _TICKS)
    at = -(-offset // interval) * interval
    ticks = []
    while at <= offset + axis.worked_ms:
        ticks.append(Tick(round(axis.percent_worked(at - offset), 2), _label(at)))
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
        return _("%(s)s s") % {"s": f"{seconds:g}"}
    minutes, rest = divmod(round(seconds), 60)
    return _("%(min)s min") % {"min": f"{minutes}:{rest:02d}" if rest else minutes}


def _ms(span: timedelta) -> float:
    return span.total_seconds() * 1000
