"""Who works on a run: claim, hand back, lose. All by compare-and-set, so two at once are safe
(mechanisms 1, 2, 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, F, IntegerField, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce

from decisions.audit import Deed
from runs import outbox
from runs.changes import Plus, Transition
from runs.models import ACTIVE, Run, RunStatus, RunStep, Slot, StepStatus, Worker
from runs.state import InvalidTransition, lease, move
from runs.transition import apply

MAX_TIMES_LOST = 3  # a run that cost this many workers is not tried again (reliability rule 5)


@dataclass(frozen=True, slots=True)
class Claim:
    """A run under a worker's lease; every write of the worker tests `epoch`."""

    run: Run
    worker_id: str

    @property
    def epoch(self) -> int:
        """The lease: the run's epoch when it was claimed."""
        return self.run.epoch


def claim(worker_id: str) -> Claim | None:
    """Take a slot and the run whose turn it is, in one transaction; None: no work, or no slot.

    The turn: runs that go on before runs that start, then the workspace with the fewest running,
    then the oldest. A run whose session lives in another worker is left to that worker.
    """
    while (run := next_run(worker_id)) is not None:
        if lease(run, worker_id=worker_id):
            run.epoch += 1
            return Claim(run, worker_id)
        if not _is_still_waiting(run):
            continue  # another worker was first: whose turn is it now?
        return None  # every slot is taken
    return None


def next_run(worker_id: str) -> Run | None:
    """Return the run whose turn it would be, by one read without a lock."""
    busy = (
        Slot.objects.filter(workspace_id=OuterRef("workspace_id"))
        .values("workspace_id")
        .annotate(n=Count("*"))
        .values("n")
    )
    return (
        Run.objects.filter(ready=True, lease_owner__isnull=True, status__in=ACTIVE)
        .filter(Q(pinned_worker__isnull=True) | Q(pinned_worker=worker_id))
        .annotate(busy=Coalesce(Subquery(busy, output_field=IntegerField()), Value(0)))
        .order_by(F("started_at").asc(nulls_last=True), "busy", "created_at", "id")
        .first()
    )


def _is_still_waiting(run: Run) -> bool:
    return Run.objects.filter(id=run.id, epoch=run.epoch, lease_owner__isnull=True).exists()


def hand_back(held: Claim, *, reason: str, active_ms: int) -> bool:
    """Give lease and slot back so that another worker goes on at once; tell whether the lease
    was still ours.
    """
    run, actor = held.run, f"worker:{held.worker_id}"
    data = {"reason": reason, "workerId": held.worker_id}
    deed = Deed("run.handed_back", actor, "run", run.id, run.tenant_id, run.workspace_id, data)
    with transaction.atomic():
        given = apply(_release(run, held.worker_id, deed=deed, values={"active_ms": active_ms}))
        if given is not None:
            outbox.put(held.run)
    return given is not None


def _release(run: Run, worker_id: str, *, deed: Deed, values: dict[str, Any]) -> Transition:
    """Return the transition that ends a lease and leaves the run to whoever claims it next."""
    return Transition(
        run,
        {"status": RunStatus.RUNNING, "lease_owner": worker_id, "epoch": run.epoch},
        {"lease_owner": None, "epoch": Plus(1), **values},
        deeds=[deed],
        epoch=run.epoch,
        free_slot=True,
    )


def lose_worker(worker_id: str, *, beat: int, reason: str) -> list[str]:
    """End every lease of a worker that is gone; its runs go on elsewhere, or fail after the third
    such loss.

    Guarded by the beat that was seen last: a worker that beats meanwhile keeps everything.
    Returns the runs.
    """
    with transaction.atomic():
        lost = Worker.objects.filter(id=worker_id, beat=beat, lost_at__isnull=True)
        if not lost.update(lost_at=datetime.now(UTC)):
            return []
        held = list(Run.objects.filter(lease_owner=worker_id, status=RunStatus.RUNNING))
        for run in held:
            _lose_run(run, worker_id, reason)
        # Slots of runs that ended while their worker died.
        Slot.objects.filter(worker_id=worker_id).update(
            run_id=None, workspace_id=None, worker_id=None
        )
        Run.objects.filter(pinned_worker=worker_id).update(pinned_worker=None)
    return [run.id for run in held]


def _lose_run(run: Run, worker_id: str, reason: str) -> None:
    data = {"reason": reason, "workerId": worker_id, "timesLost": run.times_lost + 1}
    if run.times_lost + 1 >= MAX_TIMES_LOST:
        _give_up(run, worker_id, data)
        return
    values = {"times_lost": Plus(1), "pinned_worker": None}
    deed = Deed("run.worker_lost", "reaper", "run", run.id, run.tenant_id, run.workspace_id, data)
    if apply(_release(run, worker_id, deed=deed, values=values)) is not None:
        outbox.put(run)


def _give_up(run: Run, worker_id: str, data: dict[str, Any]) -> None:
    error = {
        "errorCode": "EXECUTION_ERROR",
        "message": f"The run lost its worker {MAX_TIMES_LOST} times and is not tried again.",
        "details": {"causeCode": "WORKER_LOST", "workerId": worker_id},
        "retryable": True,
        "recovery": "Check the script's or step's preconditions, then submit the run again.",
        "at": int(datetime.now(UTC).timestamp() * 1000),
    }
    values = {"error": error, "times_lost": Plus(1), "result_summary": error["message"]}
    told = data | {"errorCode": error["errorCode"], "message": error["message"]}
    guard = {"status": RunStatus.RUNNING, "lease_owner": worker_id, "epoch": run.epoch}
    change = Transition(run, guard, values, epoch=run.epoch, free_slot=True)
    try:
        move(change, RunStatus.FAILED, actor="reaper", data=told)
    except InvalidTransition:
        return  # it was canceled meanwhile


def read_journal(held: Claim) -> list[RunStep]:
    """Return the steps of a claimed run, those that a former worker left started pending again.

    A started `once` step may have had its effect: it is returned as it is, and the engine fails it.
    """
    steps = list(RunStep.objects.filter(run_id=held.run.id).order_by("index"))
    left = [step for step in steps if step.status == StepStatus.STARTED and step.effect != "once"]
    for step in left:
        step.status = StepStatus.PENDING
    return steps


def free_stale_slots() -> int:
    """Free slots whose worker is gone, and slots of runs that ended and whose worker did not say
    so; return how many.
    """
    alive = Worker.objects.filter(lost_at__isnull=True).values("id")
    held = Slot.objects.filter(run_id__isnull=False).exclude(worker_id__in=alive)
    return held.update(run_id=None, workspace_id=None, worker_id=None)
