"""A large batch is shared: idle workers take some of its pending steps (mechanisms 3).

The worker that has the lease keeps it, and alone ends the run. A helper has no slot and no lease;
what it may write is a matter of the step: taken under the lock of the run's row, written only while
the step is still its own. Nobody waits for a helper longer than its steps may take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from runs.journal import step_records
from runs.lifecycle.changes import Plus, StepChange, Transition
from runs.lifecycle.transition import apply
from runs.models import Run, RunStatus, RunStep, StepStatus, Worker
from runs.queue import outbox
from runs.queue.eligibility import served_q
from runs.queue.lease_expiry import MAX_TIMES_LOST
from runs.queue.leases import ClaimedSteps, Lease, LeaseLost

MOST_HELPERS = 8
_PENDING = RunStep.objects.filter(run_id=OuterRef("id"), status=StepStatus.PENDING)
# A step that needs a person: who has the lease stops for it, helpers keep away.
_ASKING = _PENDING.filter(paused__isnull=False)


def notify_helpers(lease: Lease) -> None:
    """Ring for other workers; one that is idle comes, one that did not hear it finds the run by
    itself when it next looks for work.
    """
    others = Worker.objects.filter(lost_at__isnull=True).exclude(id=lease.worker_id)
    for worker_id in others.values_list("id", flat=True)[:MOST_HELPERS]:
        outbox.send_wakeup(outbox.worker_queue(worker_id), lease.run.id)


def find_shared_run(worker_id: str) -> Lease | None:
    """Return a part in the oldest shared run that another worker is at and that has pending steps;
    None where there is none.
    """
    going = Run.objects.filter(
        served_q(), shared=True, status=RunStatus.RUNNING, lease_owner__isnull=False
    )
    wanted = going.exclude(lease_owner=worker_id).filter(Exists(_PENDING), ~Exists(_ASKING))
    run = wanted.order_by("started_at").first()
    return None if run is None else Lease(run, worker_id, ClaimedSteps([], []), is_helper=True)


@contextmanager
def locked(lease: Lease) -> Iterator[None]:
    """Hold the run's row, in a transaction: whoever takes, writes or puts back steps of a shared
    run does it one after the other.

    Raises:
        LeaseLost: The run has ended, or went to another lease.
    """
    with transaction.atomic():
        if not Run.objects.select_for_update().filter(id=lease.run.id, **lease.guard).exists():
            raise LeaseLost(lease.run.id)
        yield


def take_steps(lease: Lease, count: int) -> list[RunStep]:
    """Return the first pending steps, at most `count`; under the lock, and to be written as started
    before it ends.
    """
    pending = RunStep.objects.filter(run_id=lease.run.id, status=StepStatus.PENDING)
    return list(pending.order_by("index")[: max(0, count)])


def check_ownership(lease: Lease, changes: Sequence[StepChange]) -> None:
    """Make sure, under the lock, that steps about to be written as over are still this worker's.

    Raises:
        LeaseLost: One was given to another meanwhile.
    """
    over = {change.index for change in changes if change.status != StepStatus.STARTED}
    ours = RunStep.objects.filter(
        run_id=lease.run.id, index__in=over, status=StepStatus.STARTED, owner=lease.worker_id
    )
    if ours.count() != len(over):
        raise LeaseLost(lease.run.id)


def has_unfinished_steps(lease: Lease) -> bool:
    """Tell whether any step is pending or under way, here or elsewhere."""
    waiting = Q(status=StepStatus.PENDING) | Q(status=StepStatus.STARTED)
    return RunStep.objects.filter(waiting, run_id=lease.run.id).exists()


def reset_steps(lease: Lease) -> None:
    """Make the steps of earlier leases pending again; they write nothing any more."""
    earlier = RunStep.objects.filter(
        run_id=lease.run.id, status=StepStatus.STARTED, epoch__lt=lease.epoch
    )
    with locked(lease):
        earlier.exclude(effect="once").update(status=StepStatus.PENDING)


def return_steps_of_lost_helpers() -> int:
    """Make the steps of helpers that are gone pending again; return how many."""
    alive = Worker.objects.filter(lost_at__isnull=True).values("id")
    under_way = RunStep.objects.filter(
        status=StepStatus.STARTED, run__shared=True, run__status=RunStatus.RUNNING
    )
    lost = under_way.exclude(owner__in=alive).values_list("owner", flat=True).distinct()
    return sum(return_steps(owner) for owner in lost if owner)


def return_steps(worker_id: str, run_id: str | None = None) -> int:
    """Make the steps that a worker took as a helper, of one run or of all, pending again, and
    return how many.

    A step that cost its helpers MAX_TIMES_LOST tries is failed instead: it may be what kills them.
    """
    taken = RunStep.objects.filter(
        status=StepStatus.STARTED,
        owner=worker_id,
        epoch=F("run__epoch"),
        run__shared=True,
        run__status=RunStatus.RUNNING,
    ).exclude(run__lease_owner=worker_id)
    if run_id is not None:
        taken = taken.filter(run_id=run_id)
    runs = list(Run.objects.filter(id__in=taken.values("run_id")))
    return sum(_put_back(run, worker_id) for run in runs)


def _put_back(run: Run, worker_id: str) -> int:
    lease = Lease(run, worker_id, ClaimedSteps([], []), is_helper=True)
    try:
        with locked(lease):
            steps = list(
                RunStep.objects.filter(
                    run_id=run.id, status=StepStatus.STARTED, owner=worker_id, epoch=run.epoch
                )
            )
            doomed = [step for step in steps if step.attempts >= MAX_TIMES_LOST]
            again = [step.id for step in steps if step.attempts < MAX_TIMES_LOST]
            RunStep.objects.filter(id__in=again).update(status=StepStatus.PENDING)
            if doomed:
                _fail(lease, doomed)
    except LeaseLost:
        return 0
    return len(steps)


def _fail(lease: Lease, steps: list[RunStep]) -> None:
    error = {
        "errorCode": "STEP_EXECUTION_FAILED",
        "message": f"The step lost its worker {MAX_TIMES_LOST} times and is not tried again.",
        "details": {"causeCode": "WORKER_LOST"},
        "retryable": True,
        "recovery": "Retry or repair only the failed step.",
    }
    changes = [step_records.failed(step, error) for step in steps]
    told = [event for change in changes for event in change.events]
    done = {"done_steps": Plus(len(changes))}
    apply(
        Transition(
            lease.run,
            lease.guard,
            done,
            events=told,
            steps=changes,
            worker_id=lease.worker_id,
            epoch=lease.epoch,
        )
    )
