"""Steps that a run gets: those planned at its submit, and those that its template appends while it
goes on.
"""

from __future__ import annotations

from datetime import datetime
from itertools import takewhile

from decisions.storable import storable
from runs.changes import StepChange, Transition
from runs.models import Run, RunStep, StepStatus
from runs.task_templates.registry import StepPlan


def new_row(run: Run, index: int, plan: StepPlan) -> RunStep:
    """Return the row of a step, which is not written yet."""
    return RunStep(
        run_id=run.id, index=index, name=plan.name, effect=plan.effect,
        effect_key=f"{run.id}:{index}", input=storable(dict(plan.input)),
    )  # fmt: skip


def new_rows(change: Transition, now: datetime) -> list[RunStep]:
    """Return the steps that a transition adds to its run, each as its line says."""
    return [_as_said(line.new, line, change, now) for line in change.steps if line.new is not None]


def _as_said(row: RunStep, line: StepChange, change: Transition, now: datetime) -> RunStep:
    begins = line.status == StepStatus.STARTED
    return RunStep(
        run_id=row.run_id, index=row.index, name=row.name, effect=row.effect,
        effect_key=row.effect_key, input=row.input, attempts=row.attempts, status=line.status,
        epoch=change.epoch, owner=change.worker_id if begins else None,
        started_at=now if begins else None,
    )  # fmt: skip


def take_over(old: Run, run: Run) -> None:
    """Have a run that is tried again begin with the steps that had succeeded, in the caller's
    transaction.
    """
    done = list(RunStep.objects.filter(run_id=old.id, status=StepStatus.SUCCEEDED))
    appended = _appended(old, run)
    for step in done:
        RunStep.objects.filter(run_id=run.id, index=step.index).update(
            status=step.status, output=step.output, attempts=step.attempts,
            started_at=step.started_at, ended_at=step.ended_at,
        )  # fmt: skip
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
    if len(whole) == len(rows):  # it failed with what the last one left
        whole.pop()
    return [
        RunStep(
            run_id=run.id, index=row.index, name=row.name, effect=row.effect,
            effect_key=f"{run.id}:{row.index}", input=row.input, status=row.status,
            output=row.output, attempts=row.attempts, started_at=row.started_at,
            ended_at=row.ended_at,
        )
        for row in whole[run.total_steps :]
    ]  # fmt: skip
