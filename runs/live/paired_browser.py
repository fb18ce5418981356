"""Tasks that act in a paired browser: what that browser may request of them, and what it is
sent about them.

A browser may take over, give back and stop only the tasks that act in it. No policy rule keeps the
person from that: the page is theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, When

from decisions.foundation.errors import Conflict
from decisions.identity.authority import at_own_page
from decisions.identity.principals import Principal
from runners.models import PluginClient
from runners.paired_browser.choice import paired_browsers
from runners.targets.targets import Caller
from runs.conversations import services
from runs.conversations.browser_wait import waits_of_tasks
from runs.conversations.errors import TaskNotFound
from runs.live.activity import PersonActivity, record_activity
from runs.models import Run, Task, TaskStatus

MAX_TASKS = 1000  # that a browser is sent when it connects; it takes others as ended
_COUNTS = ("clicks", "keys", "texts", "wheels")
_MAX_COUNT = 100_000
_ACTIVE = (TaskStatus.RUNNING, TaskStatus.ONGOING, TaskStatus.TAKEOVER)


def change_task(
    *, principal: Principal, client_id: str, message: Mapping[str, Any]
) -> dict[str, Any]:
    """Carry out a message takeover, resume, stop or activity of a browser, and return {taskId,
    status} of the task. Commits.

    Raises:
        TaskNotFound, Conflict: As the functions below.
    """
    where: dict[str, Any] = {
        "principal": principal,
        "client_id": client_id,
        "task_id": str(message["taskId"]),
    }
    counts = message.get("counts") or {}
    if message["type"] == "takeover":
        take_over_from_browser(**where, reason=message["reason"], counts=counts)
    elif message["type"] == "resume":
        resume_from_browser(**where, counts=counts)
    elif message["type"] == "stop":
        stop_from_browser(**where)
    else:
        record_browser_activity(
            **where, counts=counts, navigations=message.get("navigations") or ()
        )
    task = _task_of(**where)
    return {"taskId": task.id, "status": task.status}


def browser_of_task(principal: Principal, task_id: str) -> PluginClient | None:
    """Return the browser that a task acts in, if it is the caller's own: what a person has open is
    not shown to others who may read the task.
    """
    tasks = Task.objects.filter(id=task_id, workspace_id=principal.workspace_id)
    client_id = tasks.values_list("selected_client_id", flat=True).first()
    if client_id is None:
        return None
    return paired_browsers(Caller.of(principal)).filter(id=client_id).first()


def take_over_from_browser(
    *,
    principal: Principal,
    client_id: str,
    task_id: str,
    reason: str,
    counts: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Give the page of a task to the person at the browser; return the task. Commits; safe to
    repeat.

    Args:
        reason: input, button, debugger_canceled or overlay_removed; for the log.
        counts: what the person did so far, as `record_browser_activity`.

    Raises:
        TaskNotFound: The task does not act in this browser.
        Conflict: The task has ended.
    """
    task = _task_of(principal, client_id, task_id)
    if task.status not in (TaskStatus.CREATED, *_ACTIVE):
        raise Conflict("The task has ended.", details={"status": task.status})
    shown = services.take_over_task(
        principal=at_own_page(principal, task), task_id=task_id, reason=reason, at_browser=True
    )
    record_browser_activity(
        principal=principal, client_id=client_id, task_id=task_id, counts=counts or {}
    )
    return shown


def resume_from_browser(
    *,
    principal: Principal,
    client_id: str,
    task_id: str,
    counts: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """End the takeover of a task; return the task. Commits.

    Raises:
        TaskNotFound: The task does not act in this browser.
        Conflict: As `services.resume_task`.
    """
    task = _task_of(principal, client_id, task_id)
    if task.status == TaskStatus.TAKEOVER:
        record_browser_activity(
            principal=principal, client_id=client_id, task_id=task_id, counts=counts or {}
        )
    person = at_own_page(principal, task)
    return services.resume_task(principal=person, task_id=task_id, at_browser=True)


def stop_from_browser(*, principal: Principal, client_id: str, task_id: str) -> dict[str, Any]:
    """Cancel the runs of a task; return the task. Commits; safe to repeat.

    Raises:
        TaskNotFound: The task does not act in this browser.
    """
    person = at_own_page(principal, _task_of(principal, client_id, task_id))
    return services.stop_task(principal=person, task_id=task_id, at_browser=True)


def record_browser_activity(
    *,
    principal: Principal,
    client_id: str,
    task_id: str,
    counts: Mapping[str, int],
    navigations: Sequence[str] = (),
) -> None:
    """Record what a person did on the page during a takeover: counts of inputs and the pages, never
    keys. Nothing is recorded while no person has the page. Commits.

    Raises:
        TaskNotFound: The task does not act in this browser.
    """
    task = _task_of(principal, client_id, task_id)
    if task.status != TaskStatus.TAKEOVER:
        return
    activity = PersonActivity()
    given = {name: min(_MAX_COUNT, int(counts.get(name, 0))) for name in _COUNTS}
    activity.counts = Counter({name: count for name, count in given.items() if count > 0})
    for url in navigations:
        activity.add_navigation(url)
    if activity:
        record_activity(task_id, principal.id, activity)


def tasks_of_browser(*, principal: Principal, client_id: str) -> list[dict[str, Any]]:
    """Return {taskId, status, title, tabIds, waitsFor?} of the tasks that act in a browser and go
    on, those that a person has taken over and those with unfinished runs first.
    """
    unfinished = Run.objects.filter(task_id=OuterRef("id"), ended_at__isnull=True)
    annotated = _tasks(principal, client_id).annotate(is_unfinished=Exists(unfinished))
    rows = annotated.filter(Q(status__in=_ACTIVE) | Q(is_unfinished=True))
    taken_over_first = Case(When(status=TaskStatus.TAKEOVER, then=0), default=1)
    tasks = list(rows.order_by(taken_over_first, "-is_unfinished", "-updated_at")[:MAX_TASKS])
    waits = waits_of_tasks([task.id for task in tasks if task.status == TaskStatus.ONGOING])
    return [
        {"taskId": task.id, "status": task.status, "title": task.title, "tabIds": []}
        | ({"waitsFor": waits[task.id]} if task.id in waits else {})
        for task in tasks
    ]


def _task_of(principal: Principal, client_id: str, task_id: str) -> Task:
    task = _tasks(principal, client_id).filter(id=task_id[:64]).first()
    if task is None:
        raise TaskNotFound("No task with this id acts in this browser.")
    return task


def _tasks(principal: Principal, client_id: str) -> QuerySet[Task]:
    return Task.objects.filter(
        selected_client_id=client_id,
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
    )
