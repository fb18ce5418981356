"""A task's message queue: one run at a time; the others wait in the order of their messages.

The task's current run is the one that runs, may be claimed (`ready`), or is suspended for a person.
Lock order: a run's row, then its task's. With the task locked, a run's row is taken only if it is
free; a locked one is skipped, and `start_waiting_runs` starts it later.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from runs.lifecycle.changes import Transition
from runs.lifecycle.transition import apply
from runs.models import MessageRole, Run, RunStatus, Task, TaskMessage, TaskStatus
from runs.queue import wakeups


def unfinished_runs(task_id: str) -> QuerySet[Run]:
    """Return the runs of a task that have not ended."""
    return Run.objects.filter(task_id=task_id, ended_at__isnull=True)


def lock_task(task_id: str) -> Task | None:
    """Return a task with its row locked until the caller's transaction ends; None if deleted."""
    return Task.objects.select_for_update().filter(id=task_id).first()


def lock_runs(task_id: str) -> list[Run]:
    """Return a task's unfinished runs, locked; call it before `lock_task`."""
    return list(unfinished_runs(task_id).select_for_update().order_by("id"))


def is_current(run: Run) -> bool:
    """Return whether an unfinished run is its task's current one."""
    return run.status == RunStatus.RUNNING or run.ready


def run_ids_to_cancel(task_id: str) -> list[str]:
    """Return the ids of a task's unfinished runs, the current one last: canceled in this order,
    none starts another.
    """
    runs = unfinished_runs(task_id).only("id", "status", "ready")
    return [run.id for run in sorted(runs, key=lambda run: (is_current(run), run.id))]


def start_next_run(task: Task) -> bool:
    """Make the run of the oldest waiting message claimable, unless the task has a current run or is
    taken over; return whether the task has a current run now. The caller has locked the task.
    """
    if task.status == TaskStatus.TAKEOVER:
        return False
    runs = list(unfinished_runs(task.id).only("id", "status", "ready"))
    if any(is_current(run) for run in runs):
        return True
    waiting = {run.id for run in runs}
    messages = TaskMessage.objects.filter(
        task_id=task.id, role=MessageRole.USER, run_id__in=waiting
    )
    for run_id in messages.order_by("number").values_list("run_id", flat=True):
        free = unfinished_runs(task.id).select_for_update(skip_locked=True).filter(id=run_id)
        for run in free:
            make_claimable(run)
            return True
    return False


def make_claimable(run: Run) -> None:
    """Let workers claim a waiting run, in the caller's transaction."""
    guard = {"status": RunStatus(run.status), "ready": False, "lease_owner": None}
    if apply(Transition(run, guard, {"ready": True, "waiting_for": None})) is not None:
        run.ready = True
        wakeups.send_after_commit(run)


def hold_back(run: Run) -> None:
    """Keep workers from claiming a queued run, in the caller's transaction."""
    guard = {"status": RunStatus.QUEUED, "ready": True, "lease_owner": None}
    apply(Transition(run, guard, {"ready": False}))


def start_waiting_runs() -> int:
    """Start the next run of tasks that have waiting runs but no current one, because the run's row
    was locked when its turn came; return how many. Commits; safe to run concurrently.
    """
    waiting = Run.objects.filter(
        task_id__isnull=False, ended_at__isnull=True, status=RunStatus.QUEUED, ready=False
    )
    same_task = Run.objects.filter(task_id=OuterRef("task_id"), ended_at__isnull=True)
    current = same_task.exclude(status=RunStatus.QUEUED, ready=False)
    started = 0
    stalled = waiting.filter(~Exists(current)).values_list("task_id", flat=True).distinct()
    for task_id in list(stalled):
        with transaction.atomic():
            task = lock_task(str(task_id))
            started += task is not None and start_next_run(task)
    return started
