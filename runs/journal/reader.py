"""Read the journal of a run at its claim, and choose the steps that start with it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from decisions.foundation.infra import prepared_statements
from runs.journal import step_records
from runs.lifecycle.changes import StepChange
from runs.models import Run, RunStep, StepStatus
from runs.task_templates.registry import get_template

log = logging.getLogger(__name__)


def read_journal(run: Run) -> list[RunStep]:
    """Return the steps of a run; those that an earlier worker left `started` are pending again.

    A started `once` step may have had its effect: it is returned as it is, and the engine fails it.
    """
    read_before: dict[str, Any] = vars(run).pop("_prefetched_objects_cache", {})
    if "steps" in read_before:  # with the run (`runs.queue.dispatch_order.next_run`)
        steps = list(read_before["steps"])
    else:
        columns = prepared_statements.columns_of(RunStep, "s")
        query = f'SELECT {columns} FROM runs_runstep s WHERE run_id = %(run)s ORDER BY "index"'  # noqa: S608
        steps = prepared_statements.fetch_rows(RunStep, query, {"run": run.id})
    for step in steps:
        if step.status == StepStatus.STARTED and step.effect != "once":
            step.status = StepStatus.PENDING
    return steps


def remaining_ms(run: Run) -> float:
    """Return the milliseconds of its timeout that a run has left; 0 or less: it has expired."""
    left = float(run.timeout_ms - run.active_ms)
    if run.mode == "sync":  # the time in the queue counts; waiting for a person never does
        queued = ((run.started_at or datetime.now(UTC)) - run.created_at).total_seconds() * 1000
        left -= max(0.0, queued)
    return left


def start_first_steps(run: Run, steps: list[RunStep]) -> list[StepChange]:
    """Return the starts of the steps that start in the statement that claims their run.

    None do where the run was claimed before, or its timeout has expired.
    """
    template = get_template(run.template_id)
    if run.epoch > 0 or template is None or remaining_ms(run) <= 0:
        return []
    pending = [row for row in steps if row.status == StepStatus.PENDING]
    try:
        first = pending[: template.concurrency(run.inputs)]
        if template.last_step_waits and len(first) > 1 and first[-1] is steps[-1]:
            first.pop()
    except Exception:  # raised again under the lease, where it fails only this run
        log.exception("the template cannot choose its first steps", extra={"runId": run.id})
        return []
    for row in first:
        row.attempts += 1
    return [step_records.started(row) for row in first]
