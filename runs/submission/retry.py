"""Retry a run: which runs can be retried, and which steps the new run takes over."""

from __future__ import annotations

from itertools import takewhile

from django.db import transaction

from decisions.authorization.authorize import admit_call, use_approval
from decisions.foundation.errors import Conflict, InvalidInput, RunNotFound
from decisions.identity.authority import acting_on, seen_by
from decisions.identity.principals import Principal
from runs.models import RETRIABLE, Run, RunStep, StepStatus
from runs.queries.visibility import is_past_ttl
from runs.submission.prepare import prepare_run
from runs.submission.submit import write_run
from runs.submission.submitted_run import SubmittedRun


def retry_run(*, principal: Principal, run_id: str, include_past_ttl: bool = False) -> SubmittedRun:
    """Submit a failed or canceled run again as a new run that takes over the steps that succeeded.

    Commits before returning. Calling it twice returns the same new run (`retry_of` is unique).

    Args:
        include_past_ttl: also a run past its TTL; the admin shows runs longer than the API.

    Raises:
        RunNotFound: As `visible_run`.
        InvalidInput: The run held credentials, which were deleted.
        Conflict: The run has not ended, succeeded, or belongs to a task.
    """
    principal.require("runs:write")
    old = Run.objects.filter(seen_by(principal), id=run_id).first()
    if old is None or (is_past_ttl(old) and not include_past_ttl):
        raise RunNotFound(f"There is no run {run_id[:64]}.")
    _check_retriable(old)
    options = {**old.requested_options, "mode": "async"}
    principal = acting_on(principal, old)
    new = prepare_run(
        principal=principal,
        template_id=old.template_id,
        inputs=old.inputs,
        session_id=None if old.owns_session else old.session_id,
        options=options,
    )
    new.run.retry_of = old.id
    earlier = Run.objects.filter(retry_of=old.id).first()
    if earlier is None:
        approval = admit_call(new.as_call(key=f"retry of {old.id}"))
        with transaction.atomic():
            # Concurrent retries wait for the lock on the old row; the second finds the new run.
            list(Run.objects.select_for_update().filter(id=old.id))
            earlier = Run.objects.filter(retry_of=old.id).first()
            if earlier is None:
                use_approval(approval)
                write_run(new)
                _copy_succeeded_steps(old, new.run)
    return SubmittedRun(new.run) if earlier is None else SubmittedRun(earlier, inputs_match=True)


def _check_retriable(old: Run) -> None:
    """Refuse a run that cannot be retried.

    Raises:
        Conflict: It has not ended, succeeded, or belongs to a task: the new run would be outside of
            the task's message queue, and would not have its messages.
        InvalidInput: It held credentials.
    """
    if old.status not in RETRIABLE:
        raise Conflict(
            f"Only a run that failed or was canceled can be retried; this one is {old.status}."
        )
    if old.task_id is not None:
        raise Conflict(
            "This run answers a message of a task; send the message to the task again.",
            details={"taskId": old.task_id},
        )
    if old.holds_secrets:
        raise InvalidInput(
            "runId: this run held credentials, which were deleted; submit it again with them."
        )


def _copy_succeeded_steps(old: Run, run: Run) -> None:
    """Copy the steps that succeeded in the old run to the new one, in the caller's transaction."""
    done = list(RunStep.objects.filter(run_id=old.id, status=StepStatus.SUCCEEDED))
    appended = _appended(old, run)
    for step in done:
        RunStep.objects.filter(run_id=run.id, index=step.index).update(
            status=step.status,
            output=step.output,
            attempts=step.attempts,
            started_at=step.started_at,
            ended_at=step.ended_at,
        )
    RunStep.objects.bulk_create(appended)
    run.total_steps += len(appended)
    run.done_steps = sum(step.index < run.total_steps for step in done)
    Run.objects.filter(id=run.id).update(done_steps=run.done_steps, total_steps=run.total_steps)


def _appended(old: Run, run: Run) -> list[RunStep]:
    """Return unsaved copies of the steps that the old run appended to its plan: those before the
    first step that did not succeed.
    """
    rows = RunStep.objects.filter(run_id=old.id).order_by("index")
    succeeded = list(takewhile(lambda row: row.status == StepStatus.SUCCEEDED, rows))
    if succeeded and len(succeeded) == len(rows):  # the last step's output made the run fail
        succeeded.pop()
    return [
        RunStep(
            run_id=run.id,
            index=row.index,
            name=row.name,
            effect=row.effect,
            effect_key=f"{run.id}:{row.index}",
            input=row.input,
            status=row.status,
            output=row.output,
            attempts=row.attempts,
            started_at=row.started_at,
            ended_at=row.ended_at,
        )
        for row in succeeded[run.total_steps :]
    ]
