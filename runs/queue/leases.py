"""Leases: a worker claims a run, writes under its lease, and releases it.

Claim and release are compare-and-set UPDATEs on the run's row, so two workers at once are safe.
`runs.journal.lease_expiry` ends the leases of lost workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

from decisions.audit.record import AuditEvent
from decisions.foundation.database.repeat import repeat_after_conflict
from decisions.foundation.infra import prepared_statements
from runs.lifecycle.changes import Plus, StepChange, Transition
from runs.lifecycle.in_flight_calls import INTERRUPTED
from runs.lifecycle.session_lease import run_using
from runs.lifecycle.state_machine import lease_run
from runs.lifecycle.transition import apply
from runs.models import Run, RunStatus, RunStep, StepStatus
from runs.queue import wakeups
from runs.queue.dispatch_order import next_run


class LeaseLost(Exception):
    """The run or its step no longer belongs to this worker: it was canceled, or another worker has
    it. Nothing was written; stop working on it.
    """


@dataclass(frozen=True, slots=True)
class ClaimedSteps:
    """The steps of a run as read at its claim.

    Attributes:
        steps: all of them.
        started: those that start in the claim's own statement; none where the run was claimed
            before.
    """

    steps: list[RunStep]
    started: list[StepChange]


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's lease of a run; every write of the worker tests its `epoch`.

    Attributes:
        is_helper: another worker has the lease; this one only executes some of the steps
            (`runs.worker.work_sharing`).
        in_flight_calls: ids of the tool calls that were recorded as started under this lease, and
            not yet as ended.
    """

    run: Run
    worker_id: str
    claimed: ClaimedSteps
    is_helper: bool = False
    in_flight_calls: list[str] = field(default_factory=list)

    @property
    def guard(self) -> dict[str, Any]:
        """The values that the run's row must have for this worker to write."""
        owner = {} if self.is_helper else {"lease_owner": self.worker_id}
        return {"status": RunStatus.RUNNING, "epoch": self.epoch, **owner}

    @property
    def epoch(self) -> int:
        """The run's epoch since the claim."""
        return self.run.epoch


def claim_run(worker_id: str, read_claimed_steps: Callable[[Run], ClaimedSteps]) -> Lease | None:
    """Claim the next run in dispatch order together with a slot, in one transaction; None where no
    run waits or no slot is free.

    `read_claimed_steps` reads the run's steps and chooses those that start with the claim.
    """
    while True:
        run, lease = repeat_after_conflict(lambda: _claim_next(worker_id, read_claimed_steps))
        if lease is not None:
            return lease
        if run is None or _is_claimable(run):
            return None  # no run waits, or every slot is taken
        # Another worker claimed the run or its session first: try the next run.


def _claim_next(
    worker_id: str, read_claimed_steps: Callable[[Run], ClaimedSteps]
) -> tuple[Run | None, Lease | None]:
    """Return the next run, and its lease where this worker got it."""
    if connection.vendor != "postgresql":
        run = next_run(worker_id, lock=False)
        return run, None if run is None else _lease(run, worker_id, read_claimed_steps(run))
    with prepared_statements.in_one_transaction():
        run = next_run(worker_id, lock=True)
        if run is None:
            return None, None
        if run.owns_session and run.task_id is None:
            return run, _lease(run, worker_id, read_claimed_steps(run))
    # The lock of the run ended: a named session is locked before its run (docs/run-lifecycle.md),
    # and the claim of a task's run is more than one statement.
    return run, _lease(run, worker_id, read_claimed_steps(run))


def _lease(run: Run, worker_id: str, claimed: ClaimedSteps) -> Lease | None:
    if not lease_run(run, worker_id=worker_id, steps=claimed.started):
        return None
    run.epoch += 1
    return Lease(run, worker_id, claimed)


def _is_claimable(run: Run) -> bool:
    unclaimed = Run.objects.filter(id=run.id, epoch=run.epoch, lease_owner__isnull=True)
    if not unclaimed.filter(ready=True, status=run.status).exists():
        return False
    return run.owns_session or run_using(run.session_id) in (None, run.id)


def require_lease(run: Run) -> None:
    """Check by one query that the run is still leased as it was claimed.

    Raises:
        LeaseLost: The run was canceled, or another worker may have it.
    """
    if not Run.objects.filter(id=run.id, status=RunStatus.RUNNING, epoch=run.epoch).exists():
        raise LeaseLost


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


def read_journal(run: Run) -> list[RunStep]:
    """Return the steps of a run; those that an earlier worker left `started` are pending again.

    A started `once` step may have had its effect: it is returned as it is, and the engine fails it.
    """
    read_before: dict[str, Any] = vars(run).pop("_prefetched_objects_cache", {})
    if "steps" in read_before:  # with the run (`next_run`)
        steps = list(read_before["steps"])
    else:
        columns = prepared_statements.columns_of(RunStep, "s")
        query = f'SELECT {columns} FROM runs_runstep s WHERE run_id = %(run)s ORDER BY "index"'  # noqa: S608
        steps = prepared_statements.fetch_rows(RunStep, query, {"run": run.id})
    for step in steps:
        if step.status == StepStatus.STARTED and step.effect != "once":
            step.status = StepStatus.PENDING
    return steps
