"""The sole writer of Task.status. Status, event and audit commit together, with the change of the
run that brought it about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from decisions.audit.record import AuditEvent, record
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
    """Move a task whose row the caller's transaction has locked; where it is there already, only
    the events and values are written.

    Args:
        events: what is told before the move.
        data: of the move's own event and audit row, beside the status.

    Raises:
        ValueError: The pair is not allowed: a defect of ours.
    """
    before = TaskStatus(task.status)
    columns = dict(values or {})
    if to == before:
        append_events(task.id, events, columns)
        return
    if to not in ALLOWED[before]:
        raise ValueError(f"{before} -> {to} is no move of a task")
    columns["status"] = to
    columns["taken_over_at"] = datetime.now(UTC) if to == TaskStatus.TAKEOVER else None
    if before == TaskStatus.TAKEOVER:
        columns["times_given_back"] = task.times_given_back + 1
    told = {"status": to.value, **(data or {})}
    moved = NewEvent(EventType.STATUS_UPDATE, told)
    if not append_events(task.id, [*events, moved], columns, guard={"status": before}):
        raise ValueError(f"{task.id} is not {before} any more: its row was not locked")
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


def idle_status(task: Task) -> TaskStatus:
    """Return the status of a task in which nothing is under way: it waits for its user where a
    browser stands open for the next message, else it is done (S1 §2.1).
    """
    if not task.messages_count:
        return TaskStatus.CREATED
    return TaskStatus.ONGOING if task.used_browser else TaskStatus.COMPLETED


def status_after_last_run(task: Task) -> TaskStatus:
    """Return where a task is in which nothing is under way, by how its last run ended."""
    ends = Run.objects.filter(task_id=task.id, ended_at__isnull=False).order_by("-ended_at")
    failed = ends.values_list("status", flat=True).first() == RunStatus.FAILED
    return TaskStatus.ERROR if failed else idle_status(task)
