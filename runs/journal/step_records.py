"""What a step writes in the journal: started, succeeded, failed, each with the
event that tells it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from decisions.errors import Refused
from decisions.infra.ids import new_id
from decisions.validation.storable import storable
from runners.browser.parameters import RESERVE_SECONDS
from runners.errors import NavigationTimeout, ToolBroken, ToolFailed
from runners.tools.base import Effect
from runs.journal.interruptions import CallFailed, NeedsAnswer, NeedsPerson
from runs.lifecycle.changes import NewEvent, StepChange
from runs.models import Run, RunStep, StepStatus
from runs.task_templates.base import StepView
from runs.task_templates.matches import match_of
from runs.task_templates.outcomes import MORE_TIME

if TYPE_CHECKING:
    from runs.execution.step_context import StepRun

log = logging.getLogger(__name__)
TIMER_SECONDS = 0.25  # that a timer may be early


def about(row: RunStep) -> dict[str, Any]:
    """Return what every event of a step tells: its number, its name, and its url
    where it has one.
    """
    told: dict[str, Any] = {"step": row.index, "name": row.name}
    if isinstance(row.input.get("url"), str):
        told["url"] = row.input["url"][:500]
    return told


def view(row: RunStep) -> StepView:
    """Return a step as templates see it."""
    done = row.status == StepStatus.SUCCEEDED
    effect = Effect(row.effect)
    return StepView(row.index, row.name, row.input, done, row.output, row.error, effect)


def started(row: RunStep) -> StepChange:
    """Return the line of a step that starts; a second try is told by step.retrying instead."""
    events = [NewEvent("step.started", about(row))] if row.attempts == 1 else []
    return StepChange(row.index, StepStatus.STARTED, events)


def retrying(row: RunStep, error: Mapping[str, Any]) -> NewEvent:
    """Return the event of a step that failed and is tried once more."""
    told = {"attempt": row.attempts, "errorCode": error["errorCode"], "message": _short(error)}
    return NewEvent("step.retrying", storable(about(row) | told))


def succeeded(
    row: RunStep, output: Mapping[str, Any], step_run: StepRun, duration_ms: int
) -> StepChange:
    """Return the line of a step that did what it should."""
    output = storable(output)
    row.status, row.output = StepStatus.SUCCEEDED, output
    data = about(row) | {"durationMs": duration_ms}
    for key in ("title", "pageType"):
        if isinstance(output.get(key), str):
            data[key] = output[key][:200]
    if (match := match_of(output)) is not None:
        data["match"] = match
    if output.get("warnings"):
        data["warnings"] = list(output["warnings"])[:5]
    return StepChange(
        row.index,
        StepStatus.SUCCEEDED,
        [NewEvent("step.succeeded", data)],
        output=output,
        blobs=tuple(step_run.blobs),
        calls=tuple(step_run.made),
    )


def skipped(row: RunStep, reason: str) -> StepChange:
    """Return the line of a step that need not be done."""
    row.status, row.output = StepStatus.SKIPPED, {"skipped": reason}
    return StepChange(row.index, StepStatus.SKIPPED, [], output=row.output)


def paused(row: RunStep, step_run: StepRun, *, had_page: bool, taken_over: bool) -> StepChange:
    """Return the line of a step that stopped for a person: it is to be done again, and goes on
    behind the calls that it has made.
    """
    calls = step_run.masker.value(step_run.calls)
    row.status = StepStatus.PENDING
    row.paused = storable({"calls": calls, "hadPage": had_page, "takenOver": taken_over})
    return StepChange(
        row.index,
        StepStatus.PENDING,
        [],
        blobs=tuple(step_run.blobs),
        paused=row.paused,
        calls=tuple(step_run.made),
    )


def unasked(change: StepChange) -> StepChange:
    """Return the line of a step whose run is handed back before anybody was asked: what was not
    asked about that page may be done on another, unless the step did something on it already.
    """
    if change.paused is None or change.paused["calls"]:
        return change
    return replace(change, paused=None)


def failed(
    row: RunStep, error: Mapping[str, Any], step_run: StepRun | None = None, duration_ms: int = 0
) -> StepChange:
    """Return the line of a step that failed for good."""
    error = storable(error)
    row.status, row.error = StepStatus.FAILED, error
    told = {
        "durationMs": duration_ms,
        "errorCode": error["errorCode"],
        "message": _short(error),
    }
    return StepChange(
        row.index,
        StepStatus.FAILED,
        [NewEvent("step.failed", about(row) | told)],
        error=error,
        blobs=tuple(step_run.blobs) if step_run else (),
        calls=tuple(step_run.made) if step_run else (),
    )


def wait_reason(future: Future[Mapping[str, Any]]) -> NeedsPerson | NeedsAnswer | None:
    """Return what a step stopped for that needs a person, or None where it just ended."""
    error = None if future.cancelled() else future.exception()
    return error if isinstance(error, NeedsPerson | NeedsAnswer) else None


def kept(error: ToolFailed | Refused) -> dict[str, Any]:
    """Return an error as a step keeps it: what helps is the run's to tell."""
    return {name: what for name, what in error.as_dict().items() if name != "nextActions"}


def error_of(
    future: Future[Mapping[str, Any]], run: Run, *, ends_at: float
) -> Mapping[str, Any] | None:
    """Return why a step's try failed, or None. A defect of ours is logged in full and told by its
    id alone; a wait on a page that the run's end (`ends_at`, in `time.monotonic()` seconds) cut
    short is the run's timeout, not the page's.
    """
    error = _error_of(future, run.id)
    left_s = ends_at - time.monotonic()
    is_cut = left_s <= RESERVE_SECONDS + TIMER_SECONDS
    if error is None or error["errorCode"] != NavigationTimeout.code or not is_cut:
        return error
    message = f"The run's {run.timeout_ms} ms were over before this: {error['message']}"
    return {**error, "errorCode": "RUN_TIMEOUT", "message": message, "recovery": MORE_TIME}


def _error_of(future: Future[Mapping[str, Any]], run_id: str) -> Mapping[str, Any] | None:
    try:
        error = future.exception()
    except CancelledError:
        return ToolFailed("The step was interrupted.").as_dict()
    if error is None:
        return None
    if isinstance(error, CallFailed):
        return error.error
    if isinstance(error, ToolFailed | Refused):
        return kept(error)
    error_id = new_id("err_")
    log.error(
        "a step ended over a defect", exc_info=error, extra={"runId": run_id, "errorId": error_id}
    )
    return ToolBroken(
        f"The step ended over an internal error; the server's log has it under {error_id}.",
        details={"errorId": error_id},
    ).as_dict()


def effect_unknown(row: RunStep) -> Mapping[str, Any]:
    """Return the error of a `once` step whose worker was lost: it may have had its effect, and is
    not repeated.
    """
    return ToolFailed(
        f"The worker was lost during '{row.name}'; whether it took effect is unknown.",
        details={"effect": "unknown", "step": row.index},
    ).as_dict()


def lost(rows: Iterable[RunStep], begun: Iterable[StepChange]) -> list[StepChange]:
    """Return the lines of `once` steps whose worker was lost under way; those in `begun` started
    with this lease.
    """
    ours = {change.index for change in begun}
    left = [row for row in rows if row.status == StepStatus.STARTED and row.index not in ours]
    return [failed(row, effect_unknown(row)) for row in left]


def _short(error: Mapping[str, Any]) -> str:
    return str(error.get("message", ""))[:500]
