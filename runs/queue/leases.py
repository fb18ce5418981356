"""Leases: a worker claims a run, writes under its lease, and releases it.

Claim and release are compare-and-set UPDATEs on the run's row, so two workers at once are safe.
`runs.queue.lease_expiry` ends the leases of lost workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction

from decisions.audit.record import AuditEvent
from decisions.foundation.database.repeat import repeat_after_conflict
from decisions.foundation.infra import prepared_statements
from runs.journal.reader import read_journal, start_first_steps
from runs.lifecycle.changes import Plus, StepChange, Transition
from runs.lifecycle.in_flight_calls import INTERRUPTED
from runs.lifecycle.lease import Lease
from runs.lifecycle.state_machine import start_or_resume
from runs.lifecycle.transition import apply
from runs.models import Run, RunStatus, StepStatus
from runs.queue import wakeups
from runs.queue.dispatch_order import next_run
from runs.queue.session_lease import acquire_session, run_using


def claim_run(worker_id: str) -> Lease | None:
    """Claim the next run in dispatch order together with a slot, in one transaction; None where no
    run waits or no slot is free.
    """
    while True:
        run, lease = repeat_after_conflict(lambda: _claim_next(worker_id))
        if lease is not None:
            return lease
        if run is None or _is_claimable(run):
            return None  # no run waits, or every slot is taken
        # Another worker claimed the run or its session first: try the next run.


def _claim_next(worker_id: str) -> tuple[Run | None, Lease | None]:
    """Return the next run, and its lease where this worker got it."""
    if connection.vendor != "postgresql":
        run = next_run(worker_id, lock=False)
        return run, None if run is None else _lease(run, worker_id)
    with prepared_statements.in_one_transaction():
        run = next_run(worker_id, lock=True)
        if run is None:
            return None, None
        if run.owns_session and run.task_id is None:
            return run, _lease(run, worker_id)
    # The lock of the run ended: a named session is locked before its run (docs/run-lifecycle.md),
    # and the claim of a task's run is more than one statement.
    return run, _lease(run, worker_id)


def _lease(run: Run, worker_id: str) -> Lease | None:
    steps = read_journal(run)
    started = start_first_steps(run, steps)
    if not lease_run(run, worker_id=worker_id, steps=started):
        return None
    run.epoch += 1
    return Lease(run, worker_id, steps, started)


def lease_run(run: Run, *, worker_id: str, steps: Sequence[StepChange] = ()) -> bool:
    """Lease a claimable run to a worker, as `start_or_resume`, with the run's named session;
    False: another worker was first, or no slot is free.
    """
    if run.owns_session:
        return start_or_resume(run, worker_id=worker_id, steps=steps)
    with transaction.atomic():
        leased = acquire_session(run, worker_id) and start_or_resume(
            run, worker_id=worker_id, steps=steps
        )
        if not leased:
            transaction.set_rollback(True)
    return leased


def _is_claimable(run: Run) -> bool:
    unclaimed = Run.objects.filter(id=run.id, epoch=run.epoch, lease_owner__isnull=True)
    if not unclaimed.filter(ready=True, status=run.status).exists():
        return False
    return run.owns_session or run_using(run.session_id) in (None, run.id)


def release_unanswered(lease: Lease) -> bool:
    """Release the lease of a claim whose answer this worker did not get, as `release_lease`.

    The steps that a first claim started were not executed: they are pending again.
    """
    rows = read_journal(lease.run) if lease.epoch == 1 else []
    steps = [
        StepChange(row.index, StepStatus.PENDING, [])
        for row in rows
        if row.status == StepStatus.STARTED
    ]
    reason, active_ms = "its claim was not answered", lease.run.active_ms
    return release_lease(lease, reason=reason, active_ms=active_ms, steps=steps)


def release_lease(
    lease: Lease, *, reason: str, active_ms: int, steps: Sequence[StepChange] = ()
) -> bool:
    """Release lease and slot, and requeue the run for any worker; False: the lease had ended."""
    run, actor = lease.run, f"worker:{lease.worker_id}"
    data = {"reason": reason, "workerId": lease.worker_id}
    event = AuditEvent(
        "run.handed_back", actor, "run", run.id, run.tenant_id, run.workspace_id, data
    )
    values = {"active_ms": active_ms}
    with transaction.atomic():
        return end_lease(
            run,
            lease.worker_id,
            event=event,
            values=values,
            abort_code=INTERRUPTED,
            steps=steps,
        )


def end_lease(
    run: Run,
    worker_id: str,
    *,
    event: AuditEvent,
    values: dict[str, Any],
    abort_code: str,
    steps: Sequence[StepChange] = (),
) -> bool:
    """End a worker's lease, free its slot and requeue the run, in the caller's transaction; False:
    the lease had ended.

    `abort_code` is recorded as the outcome of tool calls still in flight.
    """
    change = Transition(
        run,
        {"status": RunStatus.RUNNING, "lease_owner": worker_id, "epoch": run.epoch},
        {"lease_owner": None, "pinned_worker": None, "epoch": Plus(1), **values},
        steps=steps,
        audit_events=[event],
        worker_id=worker_id,
        epoch=run.epoch,
        free_slot=True,
        abort_code=abort_code,
    )
    if apply(change) is None:
        return False
    run.pinned_worker = None  # its live session ended with the lease: any worker may resume it
    wakeups.send_after_commit(run)
    return True
