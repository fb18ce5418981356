"""The end of a run: its result, stored whole as an artifact and shortened in the row; its error."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from django.db import Error

from artifacts.models import RESULT
from artifacts.services import StoredBlob, store_blob
from decisions.foundation.database.faults import is_temporary
from decisions.foundation.infra.clock import now_ms
from decisions.foundation.infra.ids import new_id
from decisions.foundation.next_actions import NextAction, next_action
from decisions.foundation.security.masking import Masker
from decisions.foundation.validation.storable import storable, storable_text
from runners.tools.base import Effect
from runs.journal import writer
from runs.journal.writer import Ending
from runs.lifecycle.changes import NewEvent, StepChange
from runs.lifecycle.lease import Lease
from runs.models import Run, RunStatus, RunStep, StepStatus
from runs.task_templates.base import Conclusion
from runs.task_templates.outcomes import MORE_TIME, next_actions
from runs.task_templates.page_texts import shown_result
from runs.task_templates.truncation import RESULT_BYTES, shorten_result

log = logging.getLogger(__name__)
WARNINGS_MAX, WARNING_CHARACTERS = 50, 500
CUT_PAGE = "Text of a page is cut here: read on, or search all of it with grep."
CUT_PAGES = (
    "Texts of pages are cut here: search them all with grep instead of outline (onlyMatches returns"
    " the matches alone), or read sections of this outline."
)
RECOVERIES = {
    "RUN_TIMEOUT": MORE_TIME,
    "RUN_CANCELED": "The expected end after a cancel; submit again if the work is still wanted.",
    "EXECUTION_ERROR": "Check the script's or step's preconditions; do with less if necessary.",
    "STEP_EXECUTION_FAILED": "Retry or repair only the failed step.",
}


def error_object(
    code: str, message: str, *, details: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a run's `error`: errorCode, message, details, retryable, recovery, at, and `more`."""
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
    """Return the error of a run whose timeout expired."""
    return error_object(
        "RUN_TIMEOUT",
        f"The run did not end within its {timeout_ms} ms.",
        details={"succeededSteps": done, "totalSteps": total},
    )


def canceled_columns(run: Run, *, by: str, reason: str) -> dict[str, Any]:
    """Return the columns of a run that ends by a cancel: the error, with the running step, and the
    next actions: the same submit again, unless a step may have had an effect.
    """
    doing = "waiting for a person" if run.waiting_for is not None else run.status
    message = f"Canceled by {by} while {doing}." + (f" {reason}" if reason else "")
    steps = RunStep.objects.filter(run_id=run.id)
    running = steps.filter(status=StepStatus.STARTED).order_by("index").first()
    at = {"step": {"step": running.index, "name": running.name}} if running else {}
    error = error_object(
        "RUN_CANCELED",
        message,
        actor=by,
        reason=reason or "a cancel was requested",
        details={"statusBefore": run.status, "doneSteps": run.done_steps},
        **at,
    )
    # Steps that have not started count too: one may start between this query and the cancel.
    is_harmless = run.status == RunStatus.QUEUED or not steps.filter(effect=Effect.ONCE).exists()
    actions = next_actions(
        error,
        template_id=run.template_id,
        inputs=run.inputs,
        again=is_harmless and not run.holds_secrets,
    )
    return {
        "error": error,
        "result_summary": message[:500],
        "next_actions": storable(in_session_of(run, actions)),
    }


def in_session_of(run: Run, actions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the next actions of a run; those that submit one do so in its session, if it used one
    that later runs can use too.
    """
    if run.owns_session or not run.session_id:
        return list(actions)
    return [
        {**action, "args": {"sessionId": run.session_id, **action["args"]}}
        if action["tool"] == "run_task_template"
        else action
        for action in actions
    ]


def masked_conclusion(conclusion: Conclusion, masker: Masker) -> Conclusion:
    """Return a template's conclusion with the masker's values masked. A next action that has one is
    left out: masked it would be another call.
    """
    if not masker:
        return conclusion
    mask = masker.value
    return replace(
        conclusion,
        result=mask(conclusion.result),
        error=mask(conclusion.error),
        summary=mask(conclusion.summary),
        warnings=mask(list(conclusion.warnings)),
        next_actions=[one for one in conclusion.next_actions if mask(one) == one],
    )


def ending_of(conclusion: Conclusion, schema: Mapping[str, Any] | None = None) -> Ending:
    """Return the ending for a template's conclusion, with its result stored as an artifact and
    shortened within the template's result `schema`. Blocks on the artifact storage.
    """
    result, error = storable(conclusion.result), storable(conclusion.error)
    blobs: Sequence[StoredBlob] = ()
    actions = list(conclusion.next_actions)
    if result is not None:
        blob, result, more = _store_result(result, conclusion.shown_characters, schema)
        blobs, actions = (blob,), [*actions, *more]
    if error is not None:
        items = (error.get("details") or {}).get("items")
        if items is not None:
            blobs, short = _store({"items": items}, "items.json")
            details = {name: value for name, value in error["details"].items() if name != "items"}
            error = {**error, "details": {**details, **short}}
        error = {"at": now_ms(), **error}
    return Ending(
        status=conclusion.status,
        result=result,
        error=error,
        summary=storable_text(conclusion.summary),
        warnings=storable([text[:WARNING_CHARACTERS] for text in conclusion.warnings])[
            :WARNINGS_MAX
        ],
        next_actions=storable(actions),
        blobs=blobs,
    )


def failed_ending(error: Mapping[str, Any], *, partial: Mapping[str, Any] | None = None) -> Ending:
    """Return the ending of a run that failed as a whole, with its `partial` result stored as an
    artifact.
    """
    blobs: Sequence[StoredBlob] = ()
    try:
        blobs = _store(storable(partial), "partial-result.json")[0] if partial else ()
    except OSError as storage:
        log.error("a partial result could not be stored: %s", storage)
    return Ending(RunStatus.FAILED, error=error, summary=str(error["message"])[:500], blobs=blobs)


def unfinished_ending(
    run: Run, steps: Iterable[RunStep], error: Mapping[str, Any], conclusion: Conclusion
) -> Ending:
    """Return the ending of a run that stops before its last step, with next actions: submit the
    rest, read the partial result.
    """
    changed_something = any(step.effect == Effect.ONCE and step.attempts for step in steps)
    again = not changed_something and not run.holds_secrets
    actions = conclusion.next_actions or next_actions(
        error, template_id=run.template_id, inputs=run.inputs, again=again
    )
    ending = failed_ending(error, partial=conclusion.result)
    reads = [
        _outline(blob.artifact_id, "This lists what was done before the run ended.")
        for blob in ending.blobs
    ]
    return replace(ending, next_actions=storable([*in_session_of(run, actions), *reads]))


def fail_with_internal_error(
    lease: Lease,
    error: Exception,
    *,
    active_ms: int,
    left: tuple[Sequence[StepChange], Sequence[NewEvent]] = ((), ()),
) -> None:
    """Fail a run because of an unexpected exception; log it in full under an error id.

    Commits, with the unwritten changes and events of its steps (`left`), unless the database
    rejects just those.

    Raises:
        LeaseLost: The run is no longer under this lease; nothing was written.
    """
    error_id = new_id("err_")
    extra = {"runId": lease.run.id, "errorId": error_id}
    log.error("a run failed with an unexpected exception", exc_info=error, extra=extra)
    run_error = error_object(
        "EXECUTION_ERROR",
        f"The run failed with an internal error; see {error_id} in the server's log.",
        details={
            "causeCode": "STORAGE" if isinstance(error, OSError) else "INTERNAL",
            "errorId": error_id,
        },
    )
    ending = failed_ending(run_error)
    try:
        changes, events = left
        writer.write(lease, changes, active_ms=active_ms, events=events, ending=ending)
    except Error as refused:
        if is_temporary(refused):
            raise
        writer.write(lease, [], active_ms=active_ms, ending=ending)


def _store(value: Mapping[str, Any], name: str) -> tuple[Sequence[StoredBlob], Mapping[str, Any]]:
    raw = orjson.dumps(value)
    blob = store_blob(raw, name=name, mime_type="application/json", kind=RESULT)
    return (blob,), shorten_result(value, RESULT_BYTES, blob.artifact_id)


def _store_result(
    whole: Mapping[str, Any], shown_characters: int | None, schema: Mapping[str, Any] | None
) -> tuple[StoredBlob, Mapping[str, Any], Sequence[NextAction]]:
    """Store a result whole, and return its blob, the result as answers show it, and the call that
    reads what is left out.
    """
    raw = orjson.dumps(whole)
    blob = store_blob(raw, name="result.json", mime_type="application/json", kind=RESULT)
    limit = len(raw) if shown_characters is None else shown_characters
    result, read_on = shown_result(whole, limit, RESULT_BYTES, blob.artifact_id, schema)
    if read_on is not None:
        reason = CUT_PAGES if "outline" in read_on else CUT_PAGE
        args = {"artifactId": blob.artifact_id, **read_on}
        return blob, result, [next_action("read_page_content", reason, **args)]
    if result == whole:
        return blob, result, []
    reason = "The result is shortened here; this lists the contents of the whole result."
    return blob, result, [_outline(blob.artifact_id, reason)]


def _outline(artifact_id: str, reason: str) -> NextAction:
    return next_action("read_page_content", reason, artifactId=artifact_id, outline=True)
