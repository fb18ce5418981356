"""Build the journal's changes of a step (started, succeeded, failed, ...) with their events.

The functions also set the new values on the row in memory.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from decisions.foundation.database.faults import is_temporary
from decisions.foundation.errors import Refused
from decisions.foundation.infra.ids import new_id
from decisions.foundation.security.url_credentials import mask_url_credentials
from decisions.foundation.validation.storable import storable
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
    from runs.calls.attempt import StepAttempt

log = logging.getLogger(__name__)
TIMER_SECONDS = 0.25  # a timer may fire this much early


def event_data(row: RunStep) -> dict[str, Any]:
    """Return the data that every event of a step has: its index, its name, and its URL if any."""
    data: dict[str, Any] = {"step": row.index, "name": row.name}
    if isinstance(row.input.get("url"), str):
        data["url"] = mask_url_credentials(row.input["url"])[:500]
    return data


def step_view(row: RunStep) -> StepView:
    """Return a step as templates receive it."""
    done = row.status == StepStatus.SUCCEEDED
    effect = Effect(row.effect)
    return StepView(row.index, row.name, row.input, done, row.output, row.error, effect)


def started(row: RunStep) -> StepChange:
    """Return the start of a step; a second attempt has the event step.retrying instead."""
    events = [NewEvent("step.started", event_data(row))] if row.attempts == 1 else []
    return StepChange(row.index, StepStatus.STARTED, events)


def retrying(row: RunStep, error: Mapping[str, Any]) -> NewEvent:
    """Return the event of a step that failed and is tried again."""
    data = {"attempt": row.attempts, "errorCode": error["errorCode"], "message": _short(error)}
    return NewEvent("step.retrying", storable(event_data(row) | data))


def succeeded(
    row: RunStep, output: Mapping[str, Any], attempt: StepAttempt, duration_ms: int
) -> StepChange:
    """Return the end of a step that succeeded."""
    output = storable(output)
    row.status, row.output = StepStatus.SUCCEEDED, output
    data = event_data(row) | {"durationMs": duration_ms}
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
        blobs=tuple(attempt.blobs),
        calls=tuple(attempt.call_records),
    )


def skipped(row: RunStep, reason: str) -> StepChange:
    """Return the end of a step that is left out."""
    row.status, row.output = StepStatus.SKIPPED, {"skipped": reason}
    return StepChange(row.index, StepStatus.SKIPPED, [], output=row.output)


def paused(row: RunStep, attempt: StepAttempt, *, had_page: bool, taken_over: bool) -> StepChange:
    """Return the change of a step that waits for a person: it is pending, and its next attempt
    replays the calls that it has made (`paused`) before it continues.
    """
    calls = attempt.masker.value(attempt.calls)
    row.status = StepStatus.PENDING
    row.paused = storable({"calls": calls, "hadPage": had_page, "takenOver": taken_over})
    return StepChange(
        row.index,
        StepStatus.PENDING,
        [],
        blobs=tuple(attempt.blobs),
        paused=row.paused,
        calls=tuple(attempt.call_records),
    )


def without_pause(change: StepChange) -> StepChange:
    """Return the change of a step whose run is released before its confirmation was requested.

    The call that needs the confirmation may then be made on another page, unless the step has made
    calls on this one.
    """
    if change.paused is None or change.paused["calls"]:
        return change
    return replace(change, paused=None)


def failed(
    row: RunStep, error: Mapping[str, Any], attempt: StepAttempt | None = None, duration_ms: int = 0
) -> StepChange:
    """Return the end of a step that failed and is not tried again."""
    error = storable(error)
    row.status, row.error = StepStatus.FAILED, error
    data = {
        "durationMs": duration_ms,
        "errorCode": error["errorCode"],
        "message": _short(error),
    }
    return StepChange(
        row.index,
        StepStatus.FAILED,
        [NewEvent("step.failed", event_data(row) | data)],
        error=error,
        blobs=tuple(attempt.blobs) if attempt else (),
        calls=tuple(attempt.call_records) if attempt else (),
    )


def wait_reason(future: Future[Mapping[str, Any]]) -> NeedsPerson | NeedsAnswer | None:
    """Return the wait for a person by which a step stopped; None where it ended."""
    error = None if future.cancelled() else future.exception()
    return error if isinstance(error, NeedsPerson | NeedsAnswer) else None


def stored_error(error: ToolFailed | Refused) -> dict[str, Any]:
    """Return an error as a step stores it: without next actions, which only the run has."""
    return {name: value for name, value in error.as_dict().items() if name != "nextActions"}


def error_of(
    future: Future[Mapping[str, Any]], run: Run, *, ends_at: float
) -> Mapping[str, Any] | None:
    """Return the error of a step's attempt; None where it succeeded.

    An unexpected exception is logged under an error id, and the error has that id alone. A
    navigation that was still waiting at the run's deadline (`ends_at`, in `time.monotonic()`
    seconds) is reported as the timeout of the run.
    """
    error = _error_of(future, run.id)
    left_s = ends_at - time.monotonic()
    is_at_deadline = left_s <= RESERVE_SECONDS + TIMER_SECONDS
    if error is None or error["errorCode"] != NavigationTimeout.code or not is_at_deadline:
        return error
    message = f"The run's timeout of {run.timeout_ms} ms expired first: {error['message']}"
    return {**error, "errorCode": "RUN_TIMEOUT", "message": message, "recovery": MORE_TIME}


def _error_of(future: Future[Mapping[str, Any]], run_id: str) -> Mapping[str, Any] | None:
    try:
        error = future.exception()
    except CancelledError:
        return ToolFailed("The step was interrupted.").as_dict()
    if error is None:
        return None
    if is_temporary(error):
        raise error  # an outage of the database: the run is released, and executed again later
    if isinstance(error, CallFailed):
        return error.error
    if isinstance(error, ToolFailed | Refused):
        return stored_error(error)
    error_id = new_id("err_")
    log.error(
        "a step ended with an unexpected exception",
        exc_info=error,
        extra={"runId": run_id, "errorId": error_id},
    )
    return ToolBroken(
        f"The step failed with an internal error; see {error_id} in the server's log.",
        details={"errorId": error_id},
    ).as_dict()


def _short(error: Mapping[str, Any]) -> str:
    return str(error.get("message", ""))[:500]


def lost_steps(rows: Iterable[RunStep], started: Iterable[StepChange]) -> list[StepChange]:
    """Return the failures of `once` steps that an earlier worker started and did not end; those in
    `started` start with this lease.
    """
    ours = {change.index for change in started}
    left = [row for row in rows if row.status == StepStatus.STARTED and row.index not in ours]
    return [failed(row, _effect_unknown(row)) for row in left]


def _effect_unknown(row: RunStep) -> Mapping[str, Any]:
    """Return the error of a `once` step whose worker was lost: it may have had its effect, so it is
    not repeated.
    """
    return ToolFailed(
        f"The worker was lost during '{row.name}'; whether it had its effect is unknown.",
        details={"effect": "unknown", "step": row.index},
    ).as_dict()
