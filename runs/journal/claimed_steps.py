"""Read the steps of a run that is about to be claimed, and choose those that start with it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from runs.journal import step_records
from runs.models import Run, StepStatus
from runs.queue import leases
from runs.queue.leases import ClaimedSteps
from runs.task_templates.registry import get_template

log = logging.getLogger(__name__)


def remaining_ms(run: Run) -> float:
    """Return the milliseconds of its timeout that a run has left; 0 or less: it has expired."""
    left = float(run.timeout_ms - run.active_ms)
    if run.mode == "sync":  # the time in the queue counts; waiting for a person never does
        queued = ((run.started_at or datetime.now(UTC)) - run.created_at).total_seconds() * 1000
        left -= max(0.0, queued)
    return left


def read_claimed_steps(run: Run) -> ClaimedSteps:
    """Return the steps of a run about to be claimed, with those that start in the same statement.

    None start so where the run was claimed before, or its timeout has expired.
    """
    steps = leases.read_journal(run)
    template = get_template(run.template_id)
    if run.epoch > 0 or template is None or remaining_ms(run) <= 0:
        return ClaimedSteps(steps, [])
    pending = [row for row in steps if row.status == StepStatus.PENDING]
    try:
        first = pending[: template.concurrency(run.inputs)]
        if template.last_step_waits and len(first) > 1 and first[-1] is steps[-1]:
            first.pop()
    except Exception:  # raised again under the lease, where it fails only this run
        log.exception("the template cannot choose its first steps", extra={"runId": run.id})
        return ClaimedSteps(steps, [])
    for row in first:
        row.attempts += 1
    return ClaimedSteps(steps, [step_records.started(row) for row in first])
