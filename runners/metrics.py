"""Metrics that a process counts about its own work: step and runner call durations, browsers.

    step_ended("batch_extract_pages", "succeeded", 2.4)
    result = await runner_call(call_runner(…))

Counting costs one lock and one addition. The numbers stay in this process until
`runs.operations.health.publisher` drains them into Redis, where those of all processes are added
up. Label values come from fixed vocabularies, never from ids: each value is a series of its own.
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

# Series of one process, all metrics together: more would mean that a label holds ids.
MAX_SERIES = 5000
SUM = "sum"  # in place of a bucket: the sum of all observed durations, in seconds
_Result = TypeVar("_Result", bound="_CallResult")
Series = tuple[str, ...]  # a metric's name, its label values, and for a histogram the bucket


class _CallResult(Protocol):
    """The part of a tool's result that is counted."""

    @property
    def ok(self) -> bool: ...

    @property
    def error(self) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric.

    Attributes:
        help: the text of its HELP line.
        labels: names of its labels, in the order of the values.
        bounds: for a histogram, the upper bounds of its buckets in seconds; empty for a counter.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...] = ()

    def bucket(self, seconds: float) -> str:
        """Return the name of the bucket that a duration falls into."""
        index = bisect_left(self.bounds, seconds)
        return str(self.bounds[index]) if index < len(self.bounds) else "+Inf"


_STEP_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_CALL_BOUNDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 180.0)
_WAIT_BOUNDS = (0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 3600.0)

STEPS: Final = MetricSpec(
    "continuity_step_duration_seconds",
    "Duration of steps of runs, by template and outcome (succeeded, failed, retried).",
    ("template", "outcome"),
    _STEP_BOUNDS,
)
WAITS: Final = MetricSpec(
    "continuity_run_wait_seconds",
    "Time from the submission of a run until a worker first claimed it.",
    ("template",),
    _WAIT_BOUNDS,
)
RUNNER_CALLS: Final = MetricSpec(
    "continuity_runner_call_duration_seconds",
    "Duration of calls to docker-runners, by outcome: ok, or the reason of the failure.",
    ("outcome",),
    _CALL_BOUNDS,
)
MODEL_TURNS: Final = MetricSpec(
    "continuity_model_turn_duration_seconds",
    "Duration of turns of agents' models, waits and retries included, by outcome: ok, late (not"
    " within its time), unavailable (none set, or unreachable), failed, interrupted.",
    ("outcome",),
    _CALL_BOUNDS,
)
MODEL_TOKENS: Final = MetricSpec(
    "continuity_model_tokens_total",
    "Tokens of agents' models in complete turns: sent to the model (input), received (output).",
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
EVENT_HUB_RESTARTS: Final = MetricSpec(
    "continuity_event_hub_restarts_total",
    "Loops of the event streams of web processes that failed and were started again.",
    ("loop",),
)
ANONYMOUS_EVENTS: Final = MetricSpec(
    "continuity_anonymous_events_total",
    "Failed sign-ins, calls with unknown tokens and uses of invalid links, by audit action; audit"
    " rows exist for a limited number of them.",
    ("action",),
)
EXTENSION_MESSAGES: Final = MetricSpec(
    "continuity_plugin_messages_total",
    "Messages that paired browsers sent, by type; invalid: they were refused.",
    ("type",),
)
EXTENSION_ACKS: Final = MetricSpec(
    "continuity_plugin_ack_duration_seconds",
    "Time until a paired browser acknowledged an action.",
    (),
    _CALL_BOUNDS,
)
EXTENSION_ACTIONS: Final = MetricSpec(
    "continuity_plugin_action_duration_seconds",
    "Duration of actions in paired browsers, by outcome: success, partial, error (the browser's own"
    " errors), offline, no_ack, no_result, interrupted.",
    ("outcome",),
    _CALL_BOUNDS,
)
METRICS: Final = {
    metric.name: metric
    for metric in (
        STEPS,
        WAITS,
        RUNNER_CALLS,
        MODEL_TURNS,
        MODEL_TOKENS,
        BROWSER_LAUNCHES,
        BROWSER_CRASHES,
        EVENT_HUB_RESTARTS,
        ANONYMOUS_EVENTS,
        EXTENSION_MESSAGES,
        EXTENSION_ACKS,
        EXTENSION_ACTIONS,
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
    """Count one attempt of a step."""
    _observe(STEPS, (template_id, outcome), seconds)


def run_claimed(template_id: str, waited_s: float) -> None:
    """Count a run that a worker claimed for the first time."""
    _observe(WAITS, (template_id,), max(0.0, waited_s))


async def runner_call(call: Awaitable[_Result]) -> _Result:
    """Await a call to a docker-runner, count it, and return its result.

    The counted outcome is `ok`, the failure's details.reason, or `interrupted`.
    """
    started, outcome = time.monotonic(), "interrupted"
    try:
        result = await call
        details = (result.error or {}).get("details") or {}
        outcome = "ok" if result.ok else str(details.get("reason", "other"))
        return result
    finally:
        known = outcome if outcome in OUTCOMES else "other"
        _observe(RUNNER_CALLS, (known,), time.monotonic() - started)


@contextmanager
def model_turn() -> Iterator[Callable[[int, int], None]]:
    """Count a turn of an agent's model by outcome and duration.

    Yields a function that counts the turn's tokens: (input, output).
    """
    started, outcome = time.monotonic(), "interrupted"
    try:
        yield _model_tokens
        outcome = "ok"
    except ToolFailed as failed:
        outcome = _model_outcome(failed)
        raise
    finally:
        _observe(MODEL_TURNS, (outcome,), time.monotonic() - started)


def _model_tokens(input_tokens: int, output_tokens: int) -> None:
    name = MODEL_TOKENS.name
    _add({(name, "input"): input_tokens, (name, "output"): output_tokens})


def _model_outcome(failed: ToolFailed) -> str:
    if isinstance(failed, ModelUnavailable):
        return "unavailable"
    return "late" if failed.details.get("timedOut") else "failed"


def browser_launched(*, sandbox: bool) -> None:
    """Count a browser that was started."""
    _add({(BROWSER_LAUNCHES.name, "on" if sandbox else "off"): 1})


def browser_crashed(what: str) -> None:
    """Count a `browser` that had to be started again, or a `page` that crashed."""
    _add({(BROWSER_CRASHES.name, what): 1})


def event_hub_restarted(loop: str) -> None:
    """Count a loop of the event hub that failed and is started again."""
    _add({(EVENT_HUB_RESTARTS.name, loop): 1})


def anonymous_events(totals: Mapping[str, int]) -> None:
    """Count audit events of callers without a valid credential, by action."""
    _add({(ANONYMOUS_EVENTS.name, action): number for action, number in totals.items()})


def extension_message(type_: str) -> None:
    """Count a message of a paired browser."""
    _add({(EXTENSION_MESSAGES.name, type_): 1})


def extension_acknowledged(seconds: float) -> None:
    """Count an action that a paired browser acknowledged."""
    _observe(EXTENSION_ACKS, (), seconds)


def extension_action_ended(outcome: str, seconds: float) -> None:
    """Count an action in a paired browser."""
    _observe(EXTENSION_ACTIONS, (outcome,), seconds)


def drain() -> dict[Series, float]:
    """Return what was counted since the last call, and reset it.

    A caller that cannot publish the numbers puts them back with `restore`.
    """
    with _lock:
        drained = dict(_numbers)
        _numbers.clear()
    return drained


def restore(drained: Mapping[Series, float]) -> None:
    """Add drained numbers again, so that the next drain returns them."""
    _add(drained)


def _observe(metric: MetricSpec, labels: tuple[str, ...], seconds: float) -> None:
    bucket = metric.bucket(seconds)
    _add({(metric.name, *labels, bucket): 1, (metric.name, *labels, SUM): seconds})


def _add(numbers: Mapping[Series, float]) -> None:
    with _lock:
        for series, number in numbers.items():
            if series in _numbers or len(_numbers) < MAX_SERIES:
                _numbers[series] = _numbers.get(series, 0) + number
