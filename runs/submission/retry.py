"""What a run that is tried again takes over from the one that failed."""

from __future__ import annotations

from itertools import takewhile

from decisions.errors import Conflict, InvalidInput
from runs.models import RETRIABLE, Run, RunStep, StepStatus


def check_retriable(old: Run) -> None:
    """Refuse what cannot be retried.

    Raises:
        Conflict: It has not ended, has nothing to retry, or is a turn in a task: tried again it
            would be outside of it, beside the runs that take turns there, and know nothing of what
            was said.
        InvalidInput: It held credentials.
    """
    if old.status not in RETRIABLE:
        raise Conflict(
            f"Only a run that failed or was canceled can be retried; this one is {old.status}."
        )
    if old.task_id is not None:
        raise Conflict(
            "This run is the answer to a message of a task: say it there again.",
            details={"taskId": old.task_id},
        )
    if old.holds_secrets:
        raise InvalidInput(
            "runId: this run held credentials, which are not kept; submit it again with them."
        )


def copy_succeeded_steps(old: Run, run: Run) -> None:
    """Have a run that is tried again begin with the steps that had succeeded, in the caller's
    transaction.
    """
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
    """Return the steps that a run tried again takes over from those appended to the first one, as
    unwritten rows: as far as they succeeded, in order, without a gap.
    """
    rows = RunStep.objects.filter(run_id=old.id).order_by("index")
    whole = list(takewhile(lambda row: row.status == StepStatus.SUCCEEDED, rows))
    if whole and len(whole) == len(rows):  # it failed with what the last one left
        whole.pop()
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
        for row in whole[run.total_steps :]
    ]
