"""How a worker opens a run that it is about to claim."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from runs.journal import step_records
from runs.models import Run, StepStatus
from runs.queue import leases
from runs.queue.leases import ClaimedSteps
from runs.task_templates.registry import get_template

log = logging.getLogger(__name__)


def ms_left(run: Run) -> float:
    """Return the milliseconds of its own time that a run has left; not above 0: it is over."""
    left = float(run.timeout_ms - run.active_ms)
    if run.mode == "sync":  # queue time counts for sync only; time that a person took, never
        queued = ((run.started_at or datetime.now(UTC)) - run.created_at).total_seconds() * 1000
        left -= max(0.0, queued)
    return left


def read_claimed_steps(run: Run) -> ClaimedSteps:
    """Read the journal of a run about to be claimed, and choose the steps that start with it."""
    steps = leases.read_journal(run)
    template = get_template(run.template_id)
    if run.epoch > 0 or template is None or ms_left(run) <= 0:
        return ClaimedSteps(steps, [])
    pending = [row for row in steps if row.status == StepStatus.PENDING]
    try:
        first = pending[: template.concurrency(run.inputs)]
        if template.last_step_waits and len(first) > 1 and first[-1] is steps[-1]:
            first.pop()
    except Exception:  # raised again under the lease, where it fails this run and no other
        log.exception("a template does not open its run", extra={"runId": run.id})
        return ClaimedSteps(steps, [])
    for row in first:
        row.attempts += 1
    return ClaimedSteps(steps, [step_records.started(row) for row in first])
