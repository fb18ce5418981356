"""Whose turn is it in a task? One run at a time; the others wait in the order of their messages.

Locks are taken in one order: the run's row, then its task's; never a task's and then a run's that
somebody else may hold (those are skipped, and whoever holds them looks again afterwards).
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from runs.lifecycle.changes import Transition
from runs.lifecycle.transition import apply
from runs.models import MessageRole, Run, RunStatus, Task, TaskMessage, TaskStatus
from runs.queue import outbox

log = logging.getLogger(__name__)


def unfinished_runs(task_id: str) -> QuerySet[Run]:
    """Return the runs of a task that have not ended."""
    return Run.objects.filter(task_id=task_id, ended_at__isnull=True)


def lock_task(task_id: str) -> Task | None:
    """Return a task, its row locked until the caller's transaction ends."""
    return Task.objects.select_for_update().filter(id=task_id).first()


def lock_runs(task_id: str) -> list[Run]:
    """Return a task's unfinished runs, locked; to be called before `lock_task`."""
    return list(unfinished_runs(task_id).select_for_update().order_by("id"))


def is_current(run: Run) -> bool:
    """Tell whether it is this run's turn: it is worked on, may be, or waits for a person."""
    return run.status == RunStatus.RUNNING or run.ready


def run_ids_to_cancel(task_id: str) -> list[str]:
    """Return a task's unfinished runs in the order in which they can be ended without the end of
    one beginning another: what waits first.
    """
    runs = unfinished_runs(task_id).only("id", "status", "ready")
    return [run.id for run in sorted(runs, key=lambda run: (is_current(run), run.id))]


def start_next_run(task: Task) -> bool:
    """Let the run of the oldest message that waits begin, if none is under way and nobody has
    taken the task over; tell whether one is under way then. The task's row is locked.
    """
    if task.status == TaskStatus.TAKEOVER:
        return False
    runs = list(unfinished_runs(task.id).only("id", "status", "ready"))
    if any(is_current(run) for run in runs):
        return True
    waiting = {run.id for run in runs}
    said = TaskMessage.objects.filter(task_id=task.id, role=MessageRole.USER, run_id__in=waiting)
    for run_id in said.order_by("number").values_list("run_id", flat=True):
        row = unfinished_runs(task.id).select_for_update(skip_locked=True).filter(id=run_id)
        for run in row:
            make_claimable(run)
            return True
    return False


def make_claimable(run: Run) -> None:
    """Let a run that was held back be claimed, in the caller's transaction."""
    guard = {"status": RunStatus(run.status), "ready": False, "lease_owner": None}
    if apply(Transition(run, guard, {"ready": True, "waiting_for": None})) is not None:
        run.ready = True
        outbox.put(run)


def hold_back(run: Run) -> None:
    """Keep a run that nobody has claimed from being claimed, in the caller's transaction."""
    guard = {"status": RunStatus.QUEUED, "ready": True, "lease_owner": None}
    apply(Transition(run, guard, {"ready": False}, cancel_wakeup=True))


def start_waiting_runs() -> int:
    """Let runs begin whose turn it is and that were passed over while their row was locked; return
    how many. Commits; any number at once is safe.
    """
    held = Run.objects.filter(
        task_id__isnull=False, ended_at__isnull=True, status=RunStatus.QUEUED, ready=False
    )
    ahead = Run.objects.filter(task_id=OuterRef("task_id"), ended_at__isnull=True)
    busy = ahead.exclude(status=RunStatus.QUEUED, ready=False)
    woken = 0
    passed_over = held.filter(~Exists(busy)).values_list("task_id", flat=True).distinct()
    for task_id in list(passed_over):
        with transaction.atomic():
            task = lock_task(str(task_id))
            woken += task is not None and start_next_run(task)
    return woken
