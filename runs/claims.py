"""Who works on a run: claim, hand back, lose. All by compare-and-set, so two at once are safe
(mechanisms 1, 2, 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from decisions.audit import Deed, record
from runs import outbox
from runs.events import log_events
from runs.models import OutboxEntry, Run, RunStatus, RunStep, Slot, StepStatus, Worker
from runs.slots import release_slot, take_slot
from runs.state import InvalidTransition, lease, move

MAX_TIMES_LOST = 3  # a run that cost this many workers is not tried again (reliability rule 5)


@dataclass(frozen=True, slots=True)
class Claim:
    """A run under a worker's lease; every write of the worker tests `epoch`."""

    run: Run
    worker_id: str
    epoch: int


def has_work(worker_id: str) -> bool:
    """Tell, by one cheap read, whether a claim could succeed."""
    return _next_run(worker_id, lock=False) is not None


def claim(worker_id: str) -> Claim | None:
    """Take a slot and the run whose turn it is, in one transaction; None when there is no work or
    no slot.

    The turn: runs that go on before runs that start, then the workspace with the fewest running,
    then the oldest. A run whose session lives in another worker is left to that worker.
    """
    if not has_work(worker_id):
        return None
    with transaction.atomic():
        found = _next_run(worker_id, lock=True)
        if found is None:
            return None
        run_id, status, epoch, workspace_id, times_lost = found
        if take_slot(
            run_id=run_id, workspace_id=workspace_id, worker_id=worker_id, epoch=epoch + 1
        ) is None:  # fmt: skip
            return None
        data = {"attempt": times_lost + 1, "workerId": worker_id}
        if lease(run_id, status=RunStatus(status), worker_id=worker_id, data=data) is None:
            transaction.set_rollback(True)
            return None
        OutboxEntry.objects.filter(run_id=run_id).delete()
        return Claim(Run.objects.get(id=run_id), worker_id, epoch + 1)


def _next_run(worker_id: str, *, lock: bool) -> tuple[Any, ...] | None:
    skip = "FOR UPDATE OF r SKIP LOCKED" if lock and connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT r.id, r.status, r.epoch, r.workspace_id, r.times_lost
                FROM runs_run r
                LEFT JOIN (SELECT workspace_id, COUNT(*) AS busy FROM runs_slot
                           WHERE run_id IS NOT NULL GROUP BY workspace_id) s
                  ON s.workspace_id = r.workspace_id
                WHERE r.ready AND r.lease_owner IS NULL AND r.status IN ('queued', 'running')
                  AND (r.pinned_worker IS NULL OR r.pinned_worker = %s)
                ORDER BY CASE r.status WHEN 'running' THEN 0 ELSE 1 END,
                         COALESCE(s.busy, 0), r.created_at, r.id
                LIMIT 1 {skip}""",  # noqa: S608  (only our own constant goes in)
            [worker_id],
        )
        found: tuple[Any, ...] | None = cursor.fetchone()
    return found


def hand_back(held: Claim, *, reason: str, active_ms: int) -> bool:
    """Give lease and slot back so that another worker goes on at once; tell whether the lease was
    still ours.
    """
    data = {"reason": reason, "workerId": held.worker_id}
    with transaction.atomic():
        rows = Run.objects.filter(
            epoch=held.epoch, lease_owner=held.worker_id, status=RunStatus.RUNNING
        )
        values = {"lease_owner": None, "epoch": F("epoch") + 1, "active_ms": active_ms}
        logged = log_events(rows, held.run.id, [], values)
        release_slot(held.run.id, epoch=held.epoch)
        if logged is None:
            return False
        place = logged.tenant_id, logged.workspace_id
        record(
            Deed("run.handed_back", f"worker:{held.worker_id}", "run", held.run.id, *place, data)
        )
        outbox.put(held.run.id)
    return True


def lose_worker(worker_id: str, *, beat: int, reason: str) -> list[str]:
    """End every lease of a worker that is gone; its runs go on elsewhere, or fail after the third
    such loss.

    Guarded by the beat that was seen last: a worker that beats meanwhile keeps everything. Returns
    the runs.
    """
    with transaction.atomic():
        now = datetime.now(UTC)
        lost = Worker.objects.filter(id=worker_id, beat=beat, lost_at__isnull=True).update(
            lost_at=now
        )
        if not lost:
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
        error = {
            "errorCode": "EXECUTION_ERROR",
            "message": f"The run lost its worker {MAX_TIMES_LOST} times and is not tried again.",
            "details": {"causeCode": "WORKER_LOST", "workerId": worker_id},
            "retryable": True,
            "recovery": "Check the script's or step's preconditions, then submit the run again.",
            "at": int(datetime.now(UTC).timestamp() * 1000),
        }
        values = {"error": error, "times_lost": F("times_lost") + 1, "epoch": F("epoch") + 1}
        try:
            move(
                run.id, RunStatus.FAILED, actor="reaper", only_from=RunStatus.RUNNING,
                epoch=run.epoch, values=values, data=data | {"errorCode": error["errorCode"]},
            )  # fmt: skip
        except InvalidTransition:
            return  # it was canceled meanwhile
    else:
        values = {
            "lease_owner": None, "epoch": F("epoch") + 1, "times_lost": F("times_lost") + 1,
            "pinned_worker": None,
        }  # fmt: skip
        rows = Run.objects.filter(epoch=run.epoch, lease_owner=worker_id, status=RunStatus.RUNNING)
        logged = log_events(rows, run.id, [], values)
        if logged is None:
            return
        place = logged.tenant_id, logged.workspace_id
        record(Deed("run.worker_lost", "reaper", "run", run.id, *place, data))
        outbox.put(run.id)


def reset_lost_steps(held: Claim) -> list[RunStep]:
    """Return the journal of a claimed run, steps that a former worker left started made pending
    again.

    A started `once` step may have had its effect: it is returned as it is, and the engine fails it.
    """
    RunStep.objects.filter(run_id=held.run.id, status=StepStatus.STARTED).exclude(
        effect="once"
    ).update(status=StepStatus.PENDING, owner=None)
    return list(RunStep.objects.filter(run_id=held.run.id).order_by("index"))


def slots_of_lost_runs() -> int:
    """Free slots whose run does not run under that lease any more and whose worker is gone; return
    how many.
    """
    alive = Worker.objects.filter(lost_at__isnull=True).values("id")
    stale = Slot.objects.filter(run_id__isnull=False, number__lt=settings.MAX_CONCURRENT_RUNS * 10)
    freed: int = stale.exclude(worker_id__in=alive).update(
        run_id=None, workspace_id=None, worker_id=None
    )
    return freed
