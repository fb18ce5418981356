"""Read tasks, their messages and their event logs, as far as they exist for the caller."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from decisions.foundation.infra.clock import to_ms
from decisions.foundation.security.url_credentials import mask_url_credentials
from decisions.foundation.validation.json_schema import page_of
from decisions.foundation.validation.storable import storable_text
from decisions.identity.authority import seen_by
from decisions.identity.principals import Principal
from runs.conversations.errors import TaskNotFound
from runs.conversations.message_queue import is_current, unfinished_runs
from runs.events.types import EventType
from runs.models import Run, RunStatus, Task, TaskEvent, TaskMessage, TaskStatus
from runs.queries.runs import event_object, take_within_bytes

MESSAGES_SHOWN = 100


def visible_task(principal: Principal, task_id: str) -> Task:
    """Return a task that the caller sees.

    Raises:
        TaskNotFound: Unknown, or another's; the error does not say which.
    """
    task = Task.objects.filter(seen_by(principal), id=storable_text(task_id)).first()
    if task is None:
        raise TaskNotFound(f"There is no task {task_id[:64]}.")
    return task


def is_taken_over(task_id: str) -> bool:
    """Return whether a person has taken over the page of a task."""
    return Task.objects.is_taken_over(task_id)


def get_task(
    *, principal: Principal, task_id: str, messages: int = MESSAGES_SHOWN
) -> dict[str, Any]:
    """Return a task with its newest messages, in order.

    Raises:
        TaskNotFound: As `visible_task`.
    """
    principal.require("tasks:read")
    return task_object(visible_task(principal, task_id), messages=messages)


def list_tasks(
    *, principal: Principal, status: str | None = None, limit: int = 50, offset: int = 0
) -> dict[str, Any]:
    """Return {tasks, total, hasMore, nextCursor}, newest first, without messages."""
    principal.require("tasks:read")
    rows = Task.objects.filter(seen_by(principal))
    if status is not None:
        rows = rows.filter(status=status)
    total = rows.count()
    tasks = [task_object(task) for task in _page(rows, limit, offset)]
    return page_of("tasks", tasks, total=total, offset=offset)


def _page(rows: QuerySet[Task], limit: int, offset: int) -> QuerySet[Task]:
    return rows.order_by("-created_at", "-id")[offset : offset + limit]


def task_object(task: Task, *, messages: int | None = None) -> dict[str, Any]:
    """Return the Task object of the API (S1 §2.1).

    Args:
        messages: how many of the newest messages to include, with the current run and the last
            error; None includes none of these.
    """
    data: dict[str, Any] = {
        "taskId": task.id,
        "title": task.title,
        "status": task.status,
        "lastSeq": task.last_seq,
        "messagesTotal": task.messages_count,
        "createdAt": to_ms(task.created_at),
        "updatedAt": to_ms(task.updated_at),
    }
    if task.target_id:
        data["targetId"] = task.target_id
    if task.selected_client_id:
        data["selectedClientId"] = task.selected_client_id
    if task.taken_over_at is not None:
        data["takenOverAt"] = to_ms(task.taken_over_at)
        if (principal_id := takeover_principal(task)) is not None:
            data["takenOverBy"] = principal_id
    if messages is not None:
        data |= _current_run(task) | _last_error(task)
        newest = task.messages.order_by("-number")[:messages]
        data["messages"] = [message_object(message) for message in reversed(newest)]
    return data


def takeover_principal(task: Task) -> str | None:
    """Return the id of the principal that took over the task's page, from the task's log; None if
    the task is not taken over.
    """
    if task.taken_over_at is None:
        return None
    takeovers = TaskEvent.objects.filter(
        task_id=task.id, type=EventType.STATUS_UPDATE, data__status=TaskStatus.TAKEOVER
    ).order_by("-seq")
    data = takeovers.values_list("data", flat=True).first() or {}
    return data.get("by")


def _current_run(task: Task) -> dict[str, Any]:
    """Return {queued, runId?, waitingFor?}: the current run and the number of runs behind it."""
    unfinished = unfinished_runs(task.id).only("id", "status", "ready", "waiting_for")
    runs = list(unfinished.order_by("created_at", "id"))
    current = next((run for run in runs if is_current(run)), None)
    data: dict[str, Any] = {"queued": len(runs) - (current is not None)}
    if current is not None:
        data["runId"] = current.id
        if current.waiting_for:
            data["waitingFor"] = current.waiting_for
    return data


def _last_error(task: Task) -> dict[str, Any]:
    """Return {error} of the last failed run of a task with the status error; else {}."""
    if task.status != TaskStatus.ERROR:
        return {}
    runs = Run.objects.filter(task_id=task.id, status=RunStatus.FAILED, result__isnull=True)
    failed = runs.order_by("-ended_at")
    last = failed.values_list("id", "error").first()
    return {"error": {**(last[1] or {}), "runId": last[0]}} if last is not None else {}


def message_object(message: TaskMessage) -> dict[str, Any]:
    """Return the message object of the API."""
    data = {
        "id": message.id,
        "role": message.role,
        "content": mask_url_credentials(message.content),
        "timestamp": to_ms(message.at),
    }
    return data | ({"runId": message.run_id} if message.run_id else {})


def list_task_events(
    *,
    principal: Principal,
    run_id: str,
    after: int = 0,
    limit: int = 100,
    max_bytes: int | None = None,
) -> tuple[dict[str, Any], int]:
    """Return {events, lastSeq, terminal} of the events after the seq `after`, and the seq of the
    task's last event. terminal is always false: a task accepts further messages.

    Args:
        run_id: the task's id; the name is that of the function that reads a run's log.

    Raises:
        TaskNotFound: As `visible_task`.
    """
    principal.require("tasks:read")
    task = visible_task(principal, run_id)
    rows = TaskEvent.objects.filter(task_id=task.id, seq__gt=after).order_by("seq")[:limit]
    events = take_within_bytes((event_object(row) for row in rows), max_bytes)
    last = events[-1]["seq"] if events else after
    page = {"events": events, "lastSeq": last, "terminal": False}
    return page, max(task.last_seq, last if events else 0)
