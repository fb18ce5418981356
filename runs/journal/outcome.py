"""How a run ends: results kept whole as an artifact and shortened in the answer, failures
explained.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from django.db import DataError, IntegrityError

from artifacts.models import RESULT
from artifacts.services import StoredBlob, store_blob
from decisions.infra.clock import now_ms
from decisions.infra.ids import new_id
from decisions.next_actions import NextAction, next_action
from decisions.validation.storable import storable, storable_text
from runners.tools.base import Effect
from runs.journal import writer
from runs.journal.writer import Ending
from runs.lifecycle.changes import NewEvent, StepChange
from runs.models import Run, RunStatus, RunStep, StepStatus
from runs.queue.leases import Lease
from runs.task_templates.base import Conclusion
from runs.task_templates.outcomes import MORE_TIME, next_actions
from runs.task_templates.truncation import RESULT_BYTES, shorten_result

log = logging.getLogger(__name__)
WARNINGS_MAX, WARNING_CHARACTERS = 50, 500
RECOVERIES = {
    "RUN_TIMEOUT": MORE_TIME,
    "RUN_CANCELED": "The expected end after a cancel; submit again if the work is still wanted.",
    "EXECUTION_ERROR": "Check the script's or step's preconditions; do with less if necessary.",
    "STEP_EXECUTION_FAILED": "Retry or repair only the failed step.",
}


def error_object(
    code: str, message: str, *, details: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a run's `error`: errorCode, message, details, retryable, recovery, at, and what else
    is known.
    """
    return {
        "errorCode": code,
        "message": message,
        "details": dict(details or {}),
        "retryable": code in ("RUN_TIMEOUT", "EXECUTION_ERROR", "RUN_CANCELED"),
        "recovery": RECOVERIES.get(code, ""),
        "at": now_ms(),
        **more,
    }


def timeout_error(timeout_ms: int, *, done: int, total: int) -> dict[str, Any]:
    """Return the error of a run whose time is over."""
    return error_object(
        "RUN_TIMEOUT",
        f"The run did not end within its {timeout_ms} ms.",
        details={"succeededSteps": done, "totalSteps": total},
    )


def canceled(run: Run, *, by: str, reason: str) -> dict[str, Any]:
    """Return the columns that the end of a run has that was canceled as it stands: the error, with
    the step under way, and the same submit again where nothing can have been sent.
    """
    told = f"Canceled by {by} while {run.status}." + (f" {reason}" if reason else "")
    steps = RunStep.objects.filter(run_id=run.id)
    under_way = steps.filter(status=StepStatus.STARTED).order_by("index").first()
    at = {"step": {"step": under_way.index, "name": under_way.name}} if under_way else {}
    error = error_object(
        "RUN_CANCELED",
        told,
        actor=by,
        reason=reason or "cancel was asked for",
        details={"statusBefore": run.status, "doneSteps": run.done_steps},
        **at,
    )
    # Not "was begun": a step may begin between this look and the cancel.
    is_harmless = run.status == RunStatus.QUEUED or not steps.filter(effect=Effect.ONCE).exists()
    actions = next_actions(
        error,
        template_id=run.template_id,
        inputs=run.inputs,
        again=is_harmless and not run.holds_secrets,
    )
    return {"error": error, "result_summary": told[:500], "next_actions": storable(actions)}


def ending_of(conclusion: Conclusion, schema: Mapping[str, Any] | None = None) -> Ending:
    """Return the ending that a template's conclusion amounts to, its result shortened within the
    template's result `schema`. Blocks on the artifact storage.
    """
    result, error = storable(conclusion.result), storable(conclusion.error)
    blobs: Sequence[StoredBlob] = ()
    actions = list(conclusion.next_actions)
    if result is not None:
        whole = result
        blobs, result = _kept(whole, "result.json", schema)
        if result is not whole:
            told = "The result is shortened here; this lists what the whole one holds."
            actions.append(_read_on(blobs[0].artifact_id, told))
    if error is not None:
        items = (error.get("details") or {}).get("items")
        if items is not None:
            blobs, short = _kept({"items": items}, "items.json")
            details = {name: told for name, told in error["details"].items() if name != "items"}
            error = {**error, "details": {**details, **short}}
        error = {"at": now_ms(), **error}
    return Ending(
        status=conclusion.status,
        result=result,
        error=error,
        summary=storable_text(conclusion.summary),
        warnings=storable([told[:WARNING_CHARACTERS] for told in conclusion.warnings])[
            :WARNINGS_MAX
        ],
        next_actions=storable(actions),
        blobs=blobs,
    )


def failed(error: Mapping[str, Any], *, partial: Mapping[str, Any] | None = None) -> Ending:
    """Return the ending of a run that failed as a whole; what it had got so far is kept as an
    artifact.
    """
    blobs: Sequence[StoredBlob] = ()
    try:
        blobs = _kept(storable(partial), "partial-result.json")[0] if partial else ()
    except OSError as storage:
        log.error("a partial result could not be kept: %s", storage)
    return Ending(RunStatus.FAILED, error=error, summary=str(error["message"])[:500], blobs=blobs)


def timed_out(
    run: Run, steps: Iterable[RunStep], error: Mapping[str, Any], conclusion: Conclusion
) -> Ending:
    """Return the ending of a run whose time is over, with the calls that would go on: what it had
    got is no result, but can be read.
    """
    changed_something = any(step.effect == Effect.ONCE and step.attempts for step in steps)
    again = not changed_something and not run.holds_secrets
    actions = conclusion.next_actions or next_actions(
        error, template_id=run.template_id, inputs=run.inputs, again=again
    )
    ending = failed(error, partial=conclusion.result)
    kept = [
        _read_on(blob.artifact_id, "This lists what had been done by then.")
        for blob in ending.blobs
    ]
    return replace(ending, next_actions=storable([*actions, *kept]))


def fail_with_internal_error(
    lease: Lease,
    error: Exception,
    *,
    active_ms: int,
    left: tuple[Sequence[StepChange], Sequence[NewEvent]] = ((), ()),
) -> None:
    """End a run over a defect of ours, which the log tells in full under the error id.

    Commits, with what the steps `left` unless that itself cannot be written.

    Raises:
        LeaseLost: The run is not ours any more; nothing was written.
    """
    error_id = new_id("err_")
    told_log = {"runId": lease.run.id, "errorId": error_id}
    log.error("a run ended over a defect", exc_info=error, extra=told_log)
    told = error_object(
        "EXECUTION_ERROR",
        f"The run ended over an internal error; the server's log has it under {error_id}.",
        details={
            "causeCode": "STORAGE" if isinstance(error, OSError) else "INTERNAL",
            "errorId": error_id,
        },
    )
    ending = failed(told)
    try:
        lines, events = left
        writer.write(lease, lines, active_ms=active_ms, events=events, ending=ending)
    except (DataError, IntegrityError):
        writer.write(lease, [], active_ms=active_ms, ending=ending)


def _kept(
    value: Mapping[str, Any], name: str, schema: Mapping[str, Any] | None = None
) -> tuple[Sequence[StoredBlob], Mapping[str, Any]]:
    raw = orjson.dumps(value)
    blob = store_blob(raw, name=name, mime_type="application/json", kind=RESULT)
    return (blob,), shorten_result(value, RESULT_BYTES, blob.artifact_id, schema)


def _read_on(artifact_id: str, reason: str) -> NextAction:
    return next_action("read_page_content", reason, artifactId=artifact_id, outline=True)
