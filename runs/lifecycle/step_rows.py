"""Rows of new steps: planned at the submit, or appended by the template while the run runs."""

from __future__ import annotations

from datetime import datetime

from decisions.foundation.security.masking import Masker
from decisions.foundation.security.url_credentials import mask_url_credentials
from decisions.foundation.validation.storable import storable
from runs.lifecycle.changes import StepChange, Transition
from runs.models import Run, RunStep, StepStatus
from runs.task_templates.base import StepPlan


def new_row(run: Run, index: int, plan: StepPlan, masker: Masker) -> RunStep:
    """Return the unsaved row of a step; its name has nothing that the run's masker masks."""
    return RunStep(
        run_id=run.id,
        index=index,
        name=masker.text(mask_url_credentials(plan.name)),
        effect=plan.effect,
        effect_key=f"{run.id}:{index}",
        input=storable(dict(plan.input)),
    )


def new_rows(change: Transition, now: datetime) -> list[RunStep]:
    """Return the unsaved rows of the steps that a transition appends, each with its status."""
    return [_new_row(step.new, step, change, now) for step in change.steps if step.new is not None]


def _new_row(row: RunStep, step: StepChange, change: Transition, now: datetime) -> RunStep:
    starts = step.status == StepStatus.STARTED
    return RunStep(
        run_id=row.run_id,
        index=row.index,
        name=row.name,
        effect=row.effect,
        effect_key=row.effect_key,
        input=row.input,
        attempts=row.attempts,
        status=step.status,
        epoch=change.epoch,
        owner=change.worker_id if starts else None,
        started_at=now if starts else None,
    )
