"""Maintenance jobs for tasks, run by the scheduler: end takeovers that last too long, delete old
tasks and expired tickets. Each is safe to run concurrently.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef

from decisions.foundation.infra.batches import BATCH_SIZE, run_in_batches
from runs.conversations.message_queue import lock_runs, lock_task, start_next_run
from runs.conversations.services import end_takeover
from runs.conversations.state import move_task
from runs.journal.outcome import error_object
from runs.lifecycle.changes import Transition
from runs.lifecycle.state_machine import move
from runs.models import Run, RunStatus, Task, TaskStatus, TaskTicket
from runs.submission.resume import TAKEOVER

TAKEOVER_MAX = timedelta(minutes=30)
_ACTOR = "scheduler"


def end_takeovers() -> int:
    """End takeovers that began longer than TAKEOVER_MAX ago; a run that waits for the page fails
    with RUN_TIMEOUT. Return how many takeovers were ended. Commits.
    """
    limit = datetime.now(UTC) - TAKEOVER_MAX
    due = Task.objects.filter(taken_over_at__lte=limit)
    return sum(_end(task_id, limit) for task_id in list(due.values_list("id", flat=True)))


def _end(task_id: str, limit: datetime) -> bool:
    with transaction.atomic():
        runs, task = lock_runs(task_id), lock_task(task_id)
        if task is None or task.taken_over_at is None or task.taken_over_at > limit:
            return False
        waiting = [run for run in runs if (run.waiting_for or {}).get("type") == TAKEOVER]
        if not waiting:
            end_takeover(task, runs, actor=_ACTOR)
            return True
        for run in waiting:
            _time_out(run)
        task = lock_task(task_id)  # read again: the end of its runs changed the row
        if task is not None:
            has_more = len(runs) > len(waiting)
            move_task(task, TaskStatus.RUNNING if has_more else TaskStatus.ERROR, actor=_ACTOR)
            start_next_run(task)
    return True


def _time_out(run: Run) -> None:
    minutes = int(TAKEOVER_MAX.total_seconds() // 60)
    message = f"A person took over the page and did not give it back within {minutes} minutes."
    error = error_object("RUN_TIMEOUT", message, details={"because": TAKEOVER})
    guard = {"status": RunStatus.RUNNING, "ready": False, "epoch": run.epoch}
    change = Transition(run, guard, {"error": error, "result_summary": message})
    data = {"errorCode": "RUN_TIMEOUT", "message": message}
    move(change, RunStatus.FAILED, actor=_ACTOR, data=data)


def delete_old_tasks() -> int:
    """Delete tasks without runs that did not change for RUN_RETENTION_DAYS, with their messages and
    logs; and expired tickets. Audit rows stay. Return the number of tasks. Commits.
    """
    now = datetime.now(UTC)
    TaskTicket.objects.filter(expires_at__lte=now).delete()
    old = Task.objects.filter(
        ~Exists(Run.objects.filter(task_id=OuterRef("id"))),
        updated_at__lte=now - timedelta(days=settings.RUN_RETENTION_DAYS),
    )

    def delete_some() -> int:
        # Locked: a message that is being written now is committed first, or finds no task.
        with transaction.atomic():
            rows = old.select_for_update(skip_locked=True).order_by("updated_at")
            ids = list(rows.values_list("id", flat=True)[:BATCH_SIZE])
            Task.objects.filter(id__in=ids).delete()
        return len(ids)

    return run_in_batches(delete_some)
