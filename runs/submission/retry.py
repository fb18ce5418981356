"""Retry a run: which runs can be retried, and which steps the new run takes over."""

from __future__ import annotations

from itertools import takewhile

from decisions.foundation.errors import Conflict, InvalidInput
from runs.models import RETRIABLE, Run, RunStep, StepStatus


def check_retriable(old: Run) -> None:
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


def copy_succeeded_steps(old: Run, run: Run) -> None:
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
