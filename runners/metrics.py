"""What a process counts of its own work for /metrics: how long steps and runner calls took, what
became of browsers.

    step_ended("batch_extract_pages", "succeeded", 2.4)
    result = await runner_call(call_runner(…))

Counting costs a lock and an addition. Numbers gather here until somebody takes them to where all
processes' numbers are added up (`runs.installation.health.publisher`). Labels are words of our
own, never ids: a figure
has as many series as it has words.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from runners.errors import ModelUnavailable, ToolFailed

# Series of one process, all figures together: more would be a label that holds ids.
MAX_SERIES = 5000
SUM = "sum"  # in a bucket's place: the seconds of all that was observed
_Answer = TypeVar("_Answer", bound="_Told")
Series = tuple[str, ...]  # a figure's name, its labels, and for a histogram the bucket


class _Told(Protocol):
    """What is counted of a tool's result."""

    @property
    def ok(self) -> bool: ...

    @property
    def error(self) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric.

    Attributes:
        told: what it is, for whoever reads the HELP line.
        labels: names of its labels, in the order in which values are given.
        bounds: of a histogram: upper bounds of its buckets in seconds; a counter has none.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...] = ()

    def bucket(self, seconds: float) -> str:
        """Return the name of the bucket that a duration falls into."""
        place = bisect_left(self.bounds, seconds)
        return str(self.bounds[place]) if place < len(self.bounds) else "+Inf"


_STEP_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_CALL_BOUNDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 180.0)
_WAIT_BOUNDS = (0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 3600.0)

STEPS: Final = MetricSpec(
    "continuity_step_duration_seconds",
    "How long steps of runs took, by template and by what came of them"
    " (succeeded, failed, retried).",
    ("template", "outcome"),
    _STEP_BOUNDS,
)
WAITS: Final = MetricSpec(
    "continuity_run_wait_seconds",
    "How long runs waited from being accepted to being taken by a worker for the first time.",
    ("template",),
    _WAIT_BOUNDS,
)
RUNNER_CALLS: Final = MetricSpec(
    "continuity_runner_call_duration_seconds",
    "How long calls to docker-runners took, by what came of them: ok, or why they failed.",
    ("outcome",),
    _CALL_BOUNDS,
)
MODEL_TURNS: Final = MetricSpec(
    "continuity_model_turn_duration_seconds",
    "How long turns of agents' models took, waits and tries again included, by what came of them:"
    " ok, late (not within its time), unavailable (none, or out of reach), failed, interrupted.",
    ("outcome",),
    _CALL_BOUNDS,
)
MODEL_TOKENS: Final = MetricSpec(
    "continuity_model_tokens_total",
    "Tokens of agents' models in turns that came whole: what they were told (input) and what they"
    " said (output).",
    ("what",),
)
BROWSER_LAUNCHES: Final = MetricSpec(
    "continuity_browser_launches_total",
    "Browsers that were started, by whether Chromium's sandbox was on.",
    ("sandbox",),
)
BROWSER_CRASHES: Final = MetricSpec(
    "continuity_browser_crashes_total",
    "Browsers that died or hung and had to be started again (browser), and pages that crashed"
    " (page).",
    ("what",),
)
METRICS: Final = {
    figure.name: figure
    for figure in (
        STEPS,
        WAITS,
        RUNNER_CALLS,
        MODEL_TURNS,
        MODEL_TOKENS,
        BROWSER_LAUNCHES,
        BROWSER_CRASHES,
    )
}
OUTCOMES: Final = frozenset(
    {
        "ok",
        "runner",
        "connect",
        "timeout",
        "status",
        "not_json",
        "shape",
        "no_endpoint",
        "too_large",
        "interrupted",
        "other",
    }
)

_lock = threading.Lock()
_numbers: dict[Series, float] = {}


def step_ended(template_id: str, outcome: str, seconds: float) -> None:
    """Count a try of a step."""
    _observe(STEPS, (template_id, outcome), seconds)


def run_claimed(template_id: str, waited_s: float) -> None:
    """Count a run that a worker took for the first time."""
    _observe(WAITS, (template_id,), max(0.0, waited_s))


async def runner_call(call: Awaitable[_Answer]) -> _Answer:
    """Await a call to a docker-runner, count it, and return what it returns: `ok`, the failure's
    details.reason, or interrupted.
    """
    began, outcome = time.monotonic(), "interrupted"
    try:
        result = await call
        details = (result.error or {}).get("details") or {}
        outcome = "ok" if result.ok else str(details.get("reason", "other"))
        return result
    finally:
        known = outcome if outcome in OUTCOMES else "other"
        _observe(RUNNER_CALLS, (known,), time.monotonic() - began)


@contextmanager
def model_turn() -> Iterator[Callable[[int, int], None]]:
    """Count a turn of an agent's model by how it ends, and how long it takes; gives what counts the
    tokens that it took, (input, output).
    """
    began, outcome = time.monotonic(), "interrupted"
    try:
        yield _model_tokens
        outcome = "ok"
    except ToolFailed as failed:
        outcome = _why(failed)
        raise
    finally:
        _observe(MODEL_TURNS, (outcome,), time.monotonic() - began)


def _model_tokens(given: int, said: int) -> None:
    _add({(MODEL_TOKENS.name, "input"): given, (MODEL_TOKENS.name, "output"): said})


def _why(failed: ToolFailed) -> str:
    if isinstance(failed, ModelUnavailable):
        return "unavailable"
    return "late" if failed.details.get("timedOut") else "failed"


def browser_launched(*, sandbox: bool) -> None:
    """Count a browser that was started."""
    _add({(BROWSER_LAUNCHES.name, "on" if sandbox else "off"): 1})


def browser_crashed(what: str) -> None:
    """Count a `browser` that had to be started again, or a `page` that crashed."""
    _add({(BROWSER_CRASHES.name, what): 1})


def drain() -> dict[Series, float]:
    """Return what was counted since the last time; the caller brings it on, or gives it back."""
    with _lock:
        taken = dict(_numbers)
        _numbers.clear()
    return taken


def restore(taken: Mapping[Series, float]) -> None:
    """Keep what could not be brought on for the next time."""
    _add(taken)


def _observe(figure: MetricSpec, labels: tuple[str, ...], seconds: float) -> None:
    bucket = figure.bucket(seconds)
    _add({(figure.name, *labels, bucket): 1, (figure.name, *labels, SUM): seconds})


def _add(numbers: Mapping[Series, float]) -> None:
    with _lock:
        for series, number in numbers.items():
            if series in _numbers or len(_numbers) < MAX_SERIES:
                _numbers[series] = _numbers.get(series, 0) + number
