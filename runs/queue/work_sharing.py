"""Work sharing: idle workers (helpers) execute some of the pending steps of a large run.

The worker that has the lease keeps it, and it alone ends the run. A helper has no slot and no
lease: it takes steps under the lock of the run's row, and writes a step only while it owns it. The
run waits for a helper at most for the timeout of its steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import transaction
from django.db.models import F, Q

from decisions.foundation.infra import prepared_statements
from runners.tools.base import Effect
from runs.journal import step_records
from runs.lifecycle.changes import Plus, StepChange, Transition
from runs.lifecycle.lease import Lease, LeaseLost
from runs.lifecycle.transition import apply
from runs.models import Run, RunStatus, RunStep, StepStatus, Worker
from runs.queue import wakeups
from runs.queue.eligibility import SERVED, served_versions
from runs.queue.lease_expiry import MAX_TIMES_LOST

MAX_HELPERS = 8
# Steps of a lost helper are repeated, so a helper takes none with the effect `once`.
_REPEATABLE = ~Q(effect=Effect.ONCE)
# A step that waits for a person: the worker with the lease suspends the run, helpers stay away.
_SHARED = f"""
    SELECT {prepared_statements.columns_of(Run, "turn")} FROM runs_run turn
    WHERE shared AND status = 'running' AND lease_owner <> %(worker)s AND {SERVED}
      AND EXISTS (SELECT 1 FROM runs_runstep
                  WHERE run_id = turn.id AND status = 'pending' AND effect <> 'once')
      AND NOT EXISTS (SELECT 1 FROM runs_runstep
                      WHERE run_id = turn.id AND status = 'pending' AND paused IS NOT NULL)
    ORDER BY started_at LIMIT 1"""  # noqa: S608  (only constants)


def notify_helpers(lease: Lease) -> None:
    """Send wake-ups to up to MAX_HELPERS other workers. A worker that misses its wake-up finds the
    run when it next looks for work.
    """
    others = Worker.objects.filter(lost_at__isnull=True).exclude(id=lease.worker_id)
    for worker_id in others.values_list("id", flat=True)[:MAX_HELPERS]:
        wakeups.send(wakeups.worker_queue(worker_id), lease.run.id)


def find_shared_run(worker_id: str) -> Lease | None:
    """Return a helper's lease of the oldest shared run of another worker that has pending steps
    which may be repeated; None where there is none.
    """
    params = {"worker": worker_id, "served": served_versions()}
    found = prepared_statements.fetch_rows(Run, _SHARED, params)
    return Lease(found[0], worker_id, is_helper=True) if found else None


@contextmanager
def lock_run(lease: Lease) -> Iterator[None]:
    """Lock the run's row in a transaction: workers take, write and release steps of a shared run
    one after the other.

    Raises:
        LeaseLost: The run has ended, or is under another lease.
    """
    with transaction.atomic():
        if not Run.objects.select_for_update().filter(id=lease.run.id, **lease.guard).exists():
            raise LeaseLost(lease.run.id)
        yield


def take_steps(lease: Lease, count: int) -> list[RunStep]:
    """Return the first pending steps, at most `count`. Call it under the lock, and write the steps
    as started before releasing it.
    """
    pending = RunStep.objects.filter(run_id=lease.run.id, status=StepStatus.PENDING)
    if lease.is_helper:
        pending = pending.filter(_REPEATABLE)
    return list(pending.order_by("index")[: max(0, count)])


def check_ownership(lease: Lease, changes: Sequence[StepChange]) -> None:
    """Check, under the lock, that this worker still owns the steps whose end it is about to write.

    Raises:
        LeaseLost: Another worker was given one of them.
    """
    ended = {change.index for change in changes if change.status != StepStatus.STARTED}
    ours = RunStep.objects.filter(
        run_id=lease.run.id, index__in=ended, status=StepStatus.STARTED, owner=lease.worker_id
    )
    if ours.count() != len(ended):
        raise LeaseLost(lease.run.id)


def has_unfinished_steps(lease: Lease) -> bool:
    """Return whether any step is pending or running, on any worker."""
    waiting = Q(status=StepStatus.PENDING) | Q(status=StepStatus.STARTED)
    return RunStep.objects.filter(waiting, run_id=lease.run.id).exists()


def reset_steps(lease: Lease) -> None:
    """Make the started steps of earlier leases pending again; workers under those cannot write."""
    earlier = RunStep.objects.filter(
        run_id=lease.run.id, status=StepStatus.STARTED, epoch__lt=lease.epoch
    )
    with lock_run(lease):
        earlier.exclude(effect="once").update(status=StepStatus.PENDING)


def release_steps_of_lost_helpers() -> int:
    """Make the started steps of lost helpers pending again; return how many."""
    alive = Worker.objects.filter(lost_at__isnull=True).values("id")
    started = RunStep.objects.filter(
        status=StepStatus.STARTED, run__shared=True, run__status=RunStatus.RUNNING
    )
    lost = started.exclude(owner__in=alive).values_list("owner", flat=True).distinct()
    return sum(release_steps(owner) for owner in lost if owner)


def release_steps(worker_id: str, run_id: str | None = None) -> int:
    """Make the started steps of a helper, of one run or of all, pending again; return how many.

    A step that was lost MAX_TIMES_LOST times fails instead: it may be what kills its workers.
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
    return sum(_release_steps(run, worker_id) for run in runs)


def _release_steps(run: Run, worker_id: str) -> int:
    lease = Lease(run, worker_id, is_helper=True)
    try:
        with lock_run(lease):
            steps = list(
                RunStep.objects.filter(
                    run_id=run.id, status=StepStatus.STARTED, owner=worker_id, epoch=run.epoch
                )
            )
            failing = [step for step in steps if step.attempts >= MAX_TIMES_LOST]
            again = [step.id for step in steps if step.attempts < MAX_TIMES_LOST]
            RunStep.objects.filter(id__in=again).update(status=StepStatus.PENDING)
            if failing:
                _fail(lease, failing)
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
    events = [event for change in changes for event in change.events]
    done = {"done_steps": Plus(len(changes))}
    apply(
        Transition(
            lease.run,
            lease.guard,
            done,
            events=events,
            steps=changes,
            worker_id=lease.worker_id,
            epoch=lease.epoch,
        )
    )
