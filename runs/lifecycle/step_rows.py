"""Steps that a run gets: those planned at its submit, and those that its template appends while it
goes on.
"""

from __future__ import annotations

from datetime import datetime

from decisions.validation.storable import storable
from runs.lifecycle.changes import StepChange, Transition
from runs.models import Run, RunStep, StepStatus
from runs.task_templates.base import StepPlan


def new_row(run: Run, index: int, plan: StepPlan) -> RunStep:
    """Return the row of a step, which is not written yet."""
    return RunStep(
        run_id=run.id,
        index=index,
        name=plan.name,
        effect=plan.effect,
        effect_key=f"{run.id}:{index}",
        input=storable(dict(plan.input)),
    )


def new_rows(change: Transition, now: datetime) -> list[RunStep]:
    """Return the steps that a transition adds to its run, each as its line says."""
    return [_as_said(line.new, line, change, now) for line in change.steps if line.new is not None]


def _as_said(row: RunStep, line: StepChange, change: Transition, now: datetime) -> RunStep:
    begins = line.status == StepStatus.STARTED
    return RunStep(
        run_id=row.run_id,
        index=row.index,
        name=row.name,
        effect=row.effect,
        effect_key=row.effect_key,
        input=row.input,
        attempts=row.attempts,
        status=line.status,
        epoch=change.epoch,
        owner=change.worker_id if begins else None,
        started_at=now if begins else None,
    )
