"""Lease expiry: end the leases of workers whose heartbeat stopped or whose process is gone.

A worker's heartbeat is a counter in its row. Each scheduler judges it by its own monotonic clock,
so wall clocks and their jumps play no part.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from decisions.audit.record import AuditEvent
from decisions.foundation.infra.processes import has_ended
from decisions.foundation.infra.staleness import ChangeWatch
from decisions.foundation.security.masking import input_masker
from runners.browser_sessions import detach_sessions
from runs.journal.outcome import (
    error_object,
    failed_ending,
    masked_conclusion,
    unfinished_ending,
)
from runs.journal.reader import read_journal
from runs.journal.step_records import step_view
from runs.journal.writer import Ending, end_run
from runs.lifecycle.changes import Plus, Transition
from runs.lifecycle.in_flight_calls import WORKER_LOST
from runs.lifecycle.lease import Lease
from runs.lifecycle.state_machine import InvalidTransition
from runs.models import Run, RunStatus, Slot, StepStatus, Worker
from runs.queue.leases import end_lease
from runs.queue.slots import release_slot
from runs.task_templates.registry import get_template

# A run whose lease expired this often since a step ended may be what kills its workers: it fails.
MAX_TIMES_LOST = 3
log = logging.getLogger(__name__)


class HeartbeatMonitor:
    """Watches the heartbeats of all workers from one scheduler process."""

    def __init__(self) -> None:
        self._heartbeats = ChangeWatch()

    def end_expired_leases(self) -> None:
        """End the leases of every worker whose heartbeat did not change for LEASE_LOST_S, or whose
        process is known to be gone.
        """
        workers = list(Worker.objects.filter(lost_at__isnull=True))
        self._heartbeats.start_round()
        for worker in workers:
            gone = has_ended(worker.process)
            unchanged_s = self._heartbeats.unchanged_s(worker.id, worker.beat)
            if gone or unchanged_s >= settings.LEASE_LOST_S:
                reason = "process gone" if gone else f"no heartbeat for {unchanged_s:.0f} s"
                runs = end_leases_of_worker(worker.id, beat=worker.beat, reason=reason)
                log.warning(
                    "a worker was lost",
                    extra={"workerId": worker.id, "reason": reason, "runs": runs},
                )
        self._heartbeats.keep_only({worker.id for worker in workers})
        if runs := end_stray_leases():
            log.warning("runs were leased to workers already marked lost", extra={"runs": runs})


def end_leases_of_worker(worker_id: str, *, beat: int, reason: str) -> list[str]:
    """Mark a worker lost and end its leases; return the ids of its runs.

    Other workers resume the runs; one that lost MAX_TIMES_LOST workers since a step of it ended
    fails. Does nothing if the heartbeat is no longer `beat`: the worker is alive and keeps all.

    Commits each lease by itself, so that the rows of two runs are never locked at once. If this
    process dies in between, `end_stray_leases` and `free_stale_slots` end the others.
    """
    with transaction.atomic():
        lost = Worker.objects.filter(id=worker_id, beat=beat, lost_at__isnull=True)
        if not lost.update(lost_at=datetime.now(UTC)):
            return []
        detach_sessions(worker_id)
    ended = _end_leases(Run.objects.filter(lease_owner=worker_id), reason)
    for run_id in Run.objects.filter(pinned_worker=worker_id).values_list("id", flat=True):
        Run.objects.filter(id=run_id, pinned_worker=worker_id).update(pinned_worker=None)
    # Slots of runs that ended while their worker died.
    Slot.objects.filter(worker_id=worker_id).update(run_id=None, workspace_id=None, worker_id=None)
    return ended


def end_stray_leases() -> list[str]:
    """End every lease whose worker is marked lost or has no row; return the ids of the runs.

    A worker that was marked lost and has not noticed it yet may claim a run; nothing else would end
    that lease.
    """
    leased = Run.objects.filter(lease_owner__isnull=False)
    strays = leased.exclude(lease_owner__in=_live_workers())
    return _end_leases(strays, "the worker was marked lost before")


def end_broken_lease(lease: Lease) -> None:
    """End the lease of a run whose end and whose failure could not be written, as that of a run
    that lost its worker: the third time the run fails.
    """
    run = Run.objects.filter(id=lease.run.id, **lease.guard)
    _end_leases(run, "the end of the run could not be written")


def free_stale_slots() -> int:
    """Free slots held by lost workers, and slots of ended runs that their worker did not release;
    return how many.
    """
    running = Run.objects.filter(
        id=OuterRef("run_id"), epoch=OuterRef("epoch"), lease_owner=OuterRef("worker_id")
    )
    taken = Slot.objects.filter(run_id__isnull=False)
    stale = list(taken.filter(~Q(worker_id__in=_live_workers()) | ~Exists(running)))
    # Compare-and-set: a slot that was taken again in the meantime stays taken.
    return sum(release_slot(str(slot.run_id), epoch=slot.epoch) for slot in stale)


def _live_workers() -> QuerySet[Worker, Any]:
    return Worker.objects.filter(lost_at__isnull=True).values("id")


def _end_leases(leased: QuerySet[Run], reason: str) -> list[str]:
    """End the leases of running runs as lost; return the ids of the runs."""
    runs = list(leased.filter(status=RunStatus.RUNNING))
    for run in runs:
        _end_lost_lease(run, str(run.lease_owner), reason)
    return [run.id for run in runs]


def _end_lost_lease(run: Run, worker_id: str, reason: str) -> None:
    data = {"reason": reason, "workerId": worker_id, "timesLost": run.times_lost + 1}
    values = {"times_lost": Plus(1), "losses_without_progress": Plus(1)}
    if run.losses_without_progress + 1 >= MAX_TIMES_LOST:
        _fail_run(run, worker_id, values, data)
        return
    event = AuditEvent(
        "run.worker_lost", "reaper", "run", run.id, run.tenant_id, run.workspace_id, data
    )
    with transaction.atomic():
        end_lease(run, worker_id, event=event, values=values, abort_code=WORKER_LOST)


def _fail_run(run: Run, worker_id: str, values: dict[str, Any], data: dict[str, Any]) -> None:
    """Fail a run that would only lose more workers, and keep the results of its steps."""
    guard = {
        "status": RunStatus.RUNNING,
        "lease_owner": worker_id,
        "epoch": run.epoch,
        "losses_without_progress": run.losses_without_progress,
    }
    change = Transition(run, guard, values, epoch=run.epoch)
    try:
        ending = _ending(run, worker_id)
        end_run(ending, change, actor="reaper", abort_code=WORKER_LOST, more=data)
    except InvalidTransition:
        return  # canceled meanwhile; or a step ended, and `end_stray_leases` ends the lease


def _ending(run: Run, worker_id: str) -> Ending:
    steps = read_journal(run)
    done = sum(step.status == StepStatus.SUCCEEDED for step in steps)
    error = error_object(
        "EXECUTION_ERROR",
        f"The run lost its worker {MAX_TIMES_LOST} times without completing a step, and is not"
        " tried again.",
        details={
            "causeCode": WORKER_LOST,
            "workerId": worker_id,
            "succeededSteps": done,
            "totalSteps": run.total_steps,
        },
    )
    template = get_template(run.template_id)
    if template is None or not done:
        return failed_ending(error)
    try:
        conclusion = template.conclude(run.inputs, [step_view(step) for step in steps])
    except Exception:  # the run fails anyway
        log.exception("the template cannot conclude a failed run", extra={"runId": run.id})
        return failed_ending(error)
    conclusion = masked_conclusion(conclusion, input_masker(run.inputs))
    return unfinished_ending(run, steps, error, conclusion)
