"""The only writer of Task.status. Status, event and audit event commit together, and with the run's
change that caused them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q

from decisions.audit.record import AuditEvent, record
from runners.paired_browser.messaging.notices import send_task_status
from runs.conversations.browser_wait import waits_of_tasks
from runs.conversations.log import append_events
from runs.events.types import EventType
from runs.lifecycle.changes import NewEvent
from runs.models import Run, RunStatus, Task, TaskStatus

_BUT_CREATED = frozenset(TaskStatus) - {TaskStatus.CREATED}
ALLOWED: dict[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.CREATED: frozenset({TaskStatus.RUNNING, TaskStatus.TAKEOVER}),
    TaskStatus.RUNNING: _BUT_CREATED - {TaskStatus.RUNNING},
    TaskStatus.ONGOING: _BUT_CREATED - {TaskStatus.ONGOING},
    TaskStatus.TAKEOVER: frozenset(TaskStatus) - {TaskStatus.TAKEOVER},
    TaskStatus.COMPLETED: _BUT_CREATED - {TaskStatus.COMPLETED},
    TaskStatus.ERROR: _BUT_CREATED - {TaskStatus.ERROR},
}


def move_task(
    task: Task,
    to: TaskStatus,
    *,
    actor: str,
    events: Sequence[NewEvent] = (),
    values: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Set the status of a task whose row the caller's transaction has locked. If it has that status
    already, only `events` and `values` are written.

    Args:
        events: written before the event of the status change.
        values: columns of the task to set.
        data: for the status change's event and audit event, besides the status.

    Raises:
        ValueError: The transition is not allowed, or the row was not locked: a bug.
    """
    before = TaskStatus(task.status)
    columns = dict(values or {})
    if to == before:
        append_events(task.id, events, columns)
        return
    if to not in ALLOWED[before]:
        raise ValueError(f"a task cannot change from {before} to {to}")
    columns["status"] = to
    columns["taken_over_at"] = datetime.now(UTC) if to == TaskStatus.TAKEOVER else None
    if before == TaskStatus.TAKEOVER:
        columns["times_given_back"] = task.times_given_back + 1
    changed = NewEvent(EventType.STATUS_UPDATE, {"status": to.value, **(data or {})})
    if not append_events(task.id, [*events, changed], columns, guard={"status": before}):
        raise ValueError(f"the status of {task.id} is no longer {before}: its row was not locked")
    record(
        AuditEvent(
            "task.status_changed",
            actor,
            "task",
            task.id,
            task.tenant_id,
            task.workspace_id,
            {"from": before.value, "to": to.value, **(data or {})},
        )
    )
    task.status = to
    if task.selected_client_id is not None:
        inform = partial(_inform_browser, task.selected_client_id, task.id, to, task.title)
        transaction.on_commit(inform, robust=True)


def _inform_browser(client_id: str, task_id: str, status: TaskStatus, title: str) -> None:
    """Send a paired browser the status of a task, and what the task waits for."""
    waits = waits_of_tasks([task_id]) if status == TaskStatus.ONGOING else {}
    send_task_status(client_id, task_id, status.value, title=title, waits_for=waits.get(task_id))


def idle_status(task: Task) -> TaskStatus:
    """Return the status of a task without a current run: ongoing if its browser stays open for the
    next message, else completed (S1 §2.1).
    """
    if not task.messages_count:
        return TaskStatus.CREATED
    return TaskStatus.ONGOING if task.used_browser else TaskStatus.COMPLETED


def status_after_last_run(task: Task) -> TaskStatus:
    """Return the status of a task without a current run: error if its last run failed without a
    result.
    """
    ended = Run.objects.filter(task_id=task.id, ended_at__isnull=False).order_by("-ended_at")
    with_result = ended.annotate(has_result=Q(result__isnull=False))
    failed = with_result.values_list("status", "has_result").first() == (RunStatus.FAILED, False)
    return TaskStatus.ERROR if failed else idle_status(task)
