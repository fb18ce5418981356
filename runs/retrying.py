"""What a run that is tried again takes over from the one that failed."""

from __future__ import annotations

from decisions.errors import Conflict, InvalidInput
from runs.models import RETRIABLE, Run, RunStep, StepStatus


def check_retriable(old: Run) -> None:
    """Refuse what cannot be retried.

    Raises:
        Conflict: It has not ended, or has nothing to retry.
        InvalidInput: It held credentials.
    """
    if old.status not in RETRIABLE:
        raise Conflict(
            f"Only a run that failed or was canceled can be retried; this one is {old.status}."
        )
    if old.holds_secrets:
        raise InvalidInput(
            "runId: this run held credentials, which are not kept; submit it again with them."
        )


def take_over(old: Run, run: Run) -> None:
    """Have the new run begin with the steps that had succeeded, in the caller's transaction."""
    done = list(RunStep.objects.filter(run_id=old.id, status=StepStatus.SUCCEEDED))
    for step in done:
        RunStep.objects.filter(run_id=run.id, index=step.index).update(
            status=step.status, output=step.output, attempts=step.attempts,
            started_at=step.started_at, ended_at=step.ended_at,
        )  # fmt: skip
    Run.objects.filter(id=run.id).update(done_steps=len(done))
    run.done_steps = len(done)
