"""Who works on a run: claim, hand back, lose. All by compare-and-set, so two at once are safe
(mechanisms 1, 2, 5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from decisions.audit.record import AuditEvent
from decisions.infra import prepared_statements
from decisions.infra.clock import now_ms
from runners.browser_sessions import detach_sessions
from runs.lifecycle.changes import Plus, StepChange, Transition
from runs.lifecycle.in_flight_calls import INTERRUPTED, WORKER_LOST
from runs.lifecycle.session_lease import run_using
from runs.lifecycle.slots import release_slot
from runs.lifecycle.status import InvalidTransition, lease_run, move
from runs.lifecycle.transition import apply
from runs.models import Run, RunStatus, RunStep, Slot, StepStatus, Worker
from runs.queue import outbox
from runs.queue.dispatch_order import next_run

MAX_TIMES_LOST = 3  # a run that cost this many workers is not tried again (reliability rule 5)


class LeaseLost(Exception):
    """The run, or a step of it, is not this worker's any more (canceled, or taken over): nothing
    was written, stop working on it.
    """


@dataclass(frozen=True, slots=True)
class ClaimedSteps:
    """How a worker begins with a run: its journal, and the steps that start with the claim.

    They start in the claim's own statement; a run that somebody worked on before starts none so.
    """

    steps: list[RunStep]
    started: list[StepChange]


@dataclass(frozen=True, slots=True)
class Lease:
    """A run under a worker's lease; every write of the worker tests `epoch`."""

    run: Run
    worker_id: str
    claimed: ClaimedSteps
    is_helper: bool = (
        False  # another worker has the lease; this one takes steps (runs/worker/work_sharing.py)
    )
    # Calls that began under this lease, and that are not told to be over.
    opened: list[str] = field(default_factory=list)

    @property
    def guard(self) -> dict[str, Any]:
        """What must be so in the run's row for this worker to write."""
        owner = {} if self.is_helper else {"lease_owner": self.worker_id}
        return {"status": RunStatus.RUNNING, "epoch": self.epoch, **owner}

    @property
    def epoch(self) -> int:
        """The lease: the run's epoch when it was claimed."""
        return self.run.epoch


def claim_run(worker_id: str, read_claimed_steps: Callable[[Run], ClaimedSteps]) -> Lease | None:
    """Take a slot and the run whose turn it is, in one transaction; None: no work, or no slot.

    `read_claimed_steps` reads the run's journal and chooses the steps that start with the claim.
    """
    while (run := next_run(worker_id)) is not None:
        claimed = read_claimed_steps(run)
        if lease_run(run, worker_id=worker_id, steps=claimed.started):
            run.epoch += 1
            return Lease(run, worker_id, claimed)
        if _is_still_waiting(run):
            return None  # every slot is taken
        # Another worker was first, with it or with its session: whose turn is it now?
    return None


def _alive() -> QuerySet[Worker, Any]:
    return Worker.objects.filter(lost_at__isnull=True).values("id")


def _is_still_waiting(run: Run) -> bool:
    unclaimed = Run.objects.filter(id=run.id, epoch=run.epoch, lease_owner__isnull=True)
    if not unclaimed.filter(ready=True, status=run.status).exists():
        return False
    return run.owns_session or run_using(run.session_id) in (None, run.id)


def release_lease(lease: Lease, *, reason: str, active_ms: int) -> bool:
    """Give lease and slot back so that another worker goes on at once; tell whether the lease
    was still ours.
    """
    run, actor = lease.run, f"worker:{lease.worker_id}"
    data = {"reason": reason, "workerId": lease.worker_id}
    deed = AuditEvent(
        "run.handed_back", actor, "run", run.id, run.tenant_id, run.workspace_id, data
    )
    with transaction.atomic():
        return _release(
            run, lease.worker_id, deed=deed, values={"active_ms": active_ms}, abort_code=INTERRUPTED
        )


def _release(
    run: Run, worker_id: str, *, deed: AuditEvent, values: dict[str, Any], abort_code: str
) -> bool:
    """End a lease, leave the run to whoever claims it next, and ring; False: it had ended."""
    change = Transition(
        run,
        {"status": RunStatus.RUNNING, "lease_owner": worker_id, "epoch": run.epoch},
        {"lease_owner": None, "pinned_worker": None, "epoch": Plus(1), **values},
        audit_events=[deed],
        epoch=run.epoch,
        free_slot=True,
        abort_code=abort_code,
    )
    if apply(change) is None:
        return False
    run.pinned_worker = None  # its live session ended with the lease: the shared queue rings
    outbox.put(run)
    return True


def end_leases_of_worker(worker_id: str, *, beat: int, reason: str) -> list[str]:
    """End every lease of a worker that is gone; its runs go on elsewhere, or fail after the third
    such loss.

    Guarded by the beat that was seen last: a worker that beats meanwhile keeps everything.
    Returns the runs.
    """
    with transaction.atomic():
        lost = Worker.objects.filter(id=worker_id, beat=beat, lost_at__isnull=True)
        if not lost.update(lost_at=datetime.now(UTC)):
            return []
        detach_sessions(worker_id)
        lease = list(Run.objects.filter(lease_owner=worker_id, status=RunStatus.RUNNING))
        for run in lease:
            _lose_run(run, worker_id, reason)
        # Slots of runs that ended while their worker died.
        Slot.objects.filter(worker_id=worker_id).update(
            run_id=None, workspace_id=None, worker_id=None
        )
        Run.objects.filter(pinned_worker=worker_id).update(pinned_worker=None)
    return [run.id for run in lease]


def end_stray_leases() -> list[str]:
    """End every lease whose worker is not among the living; return the runs.

    A worker that was given up and does not know it yet may claim; nothing else would end that
    lease.
    """
    leased = Run.objects.filter(status=RunStatus.RUNNING, lease_owner__isnull=False)
    strays = list(leased.exclude(lease_owner__in=_alive()))
    for run in strays:
        with transaction.atomic():
            _lose_run(run, str(run.lease_owner), "the worker was given up before")
    return [run.id for run in strays]


def _lose_run(run: Run, worker_id: str, reason: str) -> None:
    data = {"reason": reason, "workerId": worker_id, "timesLost": run.times_lost + 1}
    if run.times_lost + 1 >= MAX_TIMES_LOST:
        _give_up(run, worker_id, data)
        return
    deed = AuditEvent(
        "run.worker_lost", "reaper", "run", run.id, run.tenant_id, run.workspace_id, data
    )
    _release(run, worker_id, deed=deed, values={"times_lost": Plus(1)}, abort_code=WORKER_LOST)


def _give_up(run: Run, worker_id: str, data: dict[str, Any]) -> None:
    error = {
        "errorCode": "EXECUTION_ERROR",
        "message": f"The run lost its worker {MAX_TIMES_LOST} times and is not tried again.",
        "details": {"causeCode": WORKER_LOST, "workerId": worker_id},
        "retryable": True,
        "recovery": "Check the script's or step's preconditions, then submit the run again.",
        "at": now_ms(),
    }
    values = {"error": error, "times_lost": Plus(1), "result_summary": error["message"]}
    told = data | {"errorCode": error["errorCode"], "message": error["message"]}
    guard = {"status": RunStatus.RUNNING, "lease_owner": worker_id, "epoch": run.epoch}
    change = Transition(run, guard, values, epoch=run.epoch, free_slot=True, abort_code=WORKER_LOST)
    try:
        move(change, RunStatus.FAILED, actor="reaper", data=told)
    except InvalidTransition:
        return  # it was canceled meanwhile


def read_journal(run: Run) -> list[RunStep]:
    """Return the steps of a run, those that a former worker left started pending again.

    A started `once` step may have had its effect: it is returned as it is, and the engine fails it.
    """
    if connection.vendor == "postgresql":
        columns = prepared_statements.columns_of(RunStep, "s")
        query = f"SELECT {columns} FROM runs_runstep s WHERE run_id = %s ORDER BY index"  # noqa: S608
        steps = prepared_statements.fetch_rows(RunStep, query, [run.id])
    else:
        steps = list(RunStep.objects.filter(run_id=run.id).order_by("index"))
    for step in steps:
        if step.status == StepStatus.STARTED and step.effect != "once":
            step.status = StepStatus.PENDING
    return steps


def free_stale_slots() -> int:
    """Free slots whose worker is gone, and slots of runs that ended and whose worker did not say
    so; return how many.
    """
    going = Run.objects.filter(
        id=OuterRef("run_id"), epoch=OuterRef("epoch"), lease_owner=OuterRef("worker_id")
    )
    lease = Slot.objects.filter(run_id__isnull=False)
    stale = list(lease.filter(~Q(worker_id__in=_alive()) | ~Exists(going)))
    # By compare-and-set: a slot that was taken anew meanwhile stays.
    return sum(release_slot(str(slot.run_id), epoch=slot.epoch) for slot in stale)
