"""What callers can do with tasks; REST, the WebSocket and the admin come through here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.db import IntegrityError, transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.errors import Conflict, InvalidInput
from decisions.identity.principals import Principal
from decisions.infra.ids import new_id
from decisions.models import Confirmation
from runs.conversations.message_queue import (
    hold_back,
    is_current,
    lock_runs,
    lock_task,
    run_ids_to_cancel,
    start_next_run,
    unfinished_runs,
)
from runs.conversations.messages import (
    TEMPLATE,
    DuplicateMessage,
    OnBusy,
    UserMessage,
    insert_task,
    title_of,
)
from runs.conversations.selectors import message_object, task_object, visible_task
from runs.conversations.state import move_task, status_after_last_run
from runs.models import Run, RunStatus, Task, TaskMessage, TaskStatus
from runs.submission import services
from runs.submission.answer import answer_run
from runs.submission.resume import resume_after_takeover

_NEW_TASK = "A task"  # the title of one that nothing was said in yet


def create_task(
    *,
    principal: Principal,
    title: str | None = None,
    message: str | None = None,
    target_id: str | None = None,
    output_schema: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> tuple[dict[str, Any], bool]:
    """Make a task, and with a message its first run: all of it, or nothing. Commits.

    Returns the task and whether it is new: the same key again gives the same task.

    Raises:
        Conflict: The key is that of a task that begins with another message.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
        Refused: As `services.submit_run`, where there is a message.
    """
    principal.require("tasks:write")
    first = message, output_schema
    known = _task_of_key(principal, key, first)
    if known is not None:
        return task_object(known, messages=1), False
    asked = {"title": title, "message": message, "targetId": target_id}
    told = {name: value for name, value in asked.items() if value is not None}
    approval = admit_call(tool_call_request(principal, "create_task", told, key=key or ""))
    task = _new_task(principal, title or title_of(message or _NEW_TASK), target_id, key)
    try:
        _write_task(task, principal, message, output_schema, approval)
    except IntegrityError:
        known = _task_of_key(principal, key, first)  # somebody was first with it at this moment
        if known is None:
            raise
        return task_object(known, messages=1), False
    return task_object(visible_task(principal, task.id), messages=1), True


def _write_task(
    task: Task,
    principal: Principal,
    message: str | None,
    output_schema: Mapping[str, Any] | None,
    approval: Confirmation | None,
) -> None:
    if message is None:
        with transaction.atomic():
            use_approval(approval)
            insert_task(task)
        return
    first = UserMessage(
        principal,
        task.id,
        message,
        output_schema=output_schema,
        target_id=task.target_id,
        key=task.key or "",
        new_task=task,
        approval=approval,
    )
    _submit(first)


def _task_of_key(
    principal: Principal, key: str | None, first: tuple[str | None, Mapping[str, Any] | None]
) -> Task | None:
    """Return the task that has this key and begins with this message, if any.

    Raises:
        Conflict: It begins with another: nobody would ever answer this one.
    """
    if key is None:
        return None
    mine = Task.objects.filter(principal_id=principal.id, workspace_id=principal.workspace_id)
    task, (message, schema) = mine.filter(key=key).first(), first
    if task is not None and message is not None:
        said = UserMessage(principal, task.id, message, key=key, output_schema=schema)
        if said.known() is None:
            raise Conflict(
                "idempotencyKey: the task that has it begins without this message.",
                details={"taskId": task.id},
            )
    return task


def _new_task(principal: Principal, title: str, target_id: str | None, key: str | None) -> Task:
    now = datetime.now(UTC)
    return Task(
        id=new_id("task_"),
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
        user_id=principal.user_id,
        trust=principal.trust,
        title=title,
        target_id=target_id,
        key=key,
        created_at=now,
        updated_at=now,
    )


def add_message(
    *,
    principal: Principal,
    task_id: str,
    content: str,
    on_busy: OnBusy = "queue",
    output_schema: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> dict[str, Any]:
    """Say something in a task: a run of its own, that begins when those before it have ended; or
    the answer to a run that asked. Commits.

    Returns {taskId, message, runId, queued, deduplicated}: the same key again gives the same
    message.

    Args:
        on_busy: what becomes of it while a run is under way: it waits (queue), is refused, or has
            the runs before it canceled (interrupt).

    Raises:
        TaskNotFound: As `selectors.visible_task`.
        TaskBusy: With on_busy refuse.
        Refused: As `services.submit_run`.
    """
    principal.require("tasks:write")
    task = visible_task(principal, task_id)
    if task.trust == "remote":
        principal = principal.with_trust("remote")
    said = UserMessage(
        principal,
        task.id,
        content,
        on_busy=on_busy,
        output_schema=output_schema,
        key=key or "",
        target_id=task.target_id,
    )
    known = said.known()
    if known is not None:
        return _told(task.id, known, deduplicated=True)
    try:
        _place(said)
    except DuplicateMessage as first:
        return _told(task.id, first.message, deduplicated=True)
    return _told(task.id, TaskMessage.objects.get(id=said.message_id), deduplicated=False)


def _place(said: UserMessage) -> None:
    """Write the message, as the answer to a run that asked or with a run of its own."""
    asks = _asking_run(said)
    while asks is not None:
        try:
            answer_run(
                principal=_talker(said.principal),
                run_id=asks.id,
                answer=said.content,
                also_write=said.answer,
            )
        except InvalidInput:  # somebody else answered, or it ended: look again
            before, asks = asks.epoch, _asking_run(said)
            if asks is not None and asks.epoch == before:
                raise
        else:
            return
    _submit(said)
    if said.on_busy == "interrupt":
        _stop_runs(said.ahead, by=said.principal.id, reason="Interrupted by a message.")


def _asking_run(said: UserMessage) -> Run | None:
    """Return the run that the message answers, which does not wait for it then."""
    if said.on_busy == "interrupt":
        return None
    return unfinished_runs(said.task_id).filter(waiting_for__type="answer").first()


def _submit(said: UserMessage) -> None:
    services.submit_run(
        principal=_talker(said.principal),
        template_id=TEMPLATE,
        inputs=said.inputs,
        options=said.options,
        message=said,
    )


def _talker(principal: Principal) -> Principal:
    """Return the caller with the right to submit: who may talk with the agent may have it work."""
    return replace(principal, scopes=principal.scopes | {"runs:write"})


def _told(task_id: str, message: TaskMessage, *, deduplicated: bool) -> dict[str, Any]:
    run = Run.objects.filter(id=message.run_id).first()
    return {
        "taskId": task_id,
        "message": message_object(message),
        "runId": message.run_id,
        "queued": run is not None and run.ended_at is None and not is_current(run),
        "deduplicated": deduplicated,
    }


def stop_task(*, principal: Principal, task_id: str) -> dict[str, Any]:
    """Cancel what is under way in a task and what waits there, and give the page back; return the
    task. Commits; twice is once.

    Raises:
        TaskNotFound: As `selectors.visible_task`.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("tasks:write")
    task = visible_task(principal, task_id)
    approval = admit_call(tool_call_request(principal, "stop_task", {"taskId": task.id}))
    with transaction.atomic():
        use_approval(approval)
        place = task.tenant_id, task.workspace_id
        record(AuditEvent("task.stopped", principal.id, "task", task.id, *place))
    _stop_runs(run_ids_to_cancel(task.id), by=principal.id, reason="The task was stopped.")
    with transaction.atomic():
        left, locked = lock_runs(task.id), lock_task(task.id)
        if locked is not None and locked.status == TaskStatus.TAKEOVER and not left:
            move_task(locked, status_after_last_run(locked), actor=principal.id)
    return task_object(visible_task(principal, task.id), messages=1)


def _stop_runs(run_ids: list[str], *, by: str, reason: str) -> None:
    for run_id in run_ids:
        services.cancel_authorized_run(run_id, by=by, reason=reason)


def take_over_task(*, principal: Principal, task_id: str) -> dict[str, Any]:
    """Give the page to a person: nothing more is called from now on, what is in flight ends by
    itself, and the run's clock stands once it has; return the task. Commits; twice is once.

    Raises:
        TaskNotFound: As `selectors.visible_task`.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("tasks:write")
    task_id = visible_task(principal, task_id).id
    approval = admit_call(tool_call_request(principal, "take_over_task", {"taskId": task_id}))
    with transaction.atomic():
        runs, task = lock_runs(task_id), lock_task(task_id)
        if task is not None and task.status != TaskStatus.TAKEOVER:
            use_approval(approval)
            for run in runs:
                if run.status == RunStatus.QUEUED and run.ready:
                    hold_back(run)
            place = task.tenant_id, task.workspace_id
            record(AuditEvent("task.taken_over", principal.id, "task", task.id, *place))
            by = principal.id
            move_task(task, TaskStatus.TAKEOVER, actor=by, data={"by": by})
    return task_object(visible_task(principal, task_id), messages=1)


def resume_task(*, principal: Principal, task_id: str) -> dict[str, Any]:
    """Take the page back from a person: the run that waited for it goes on, or the next message's
    begins; return the task. Commits.

    Raises:
        TaskNotFound: As `selectors.visible_task`.
        Conflict: Nobody has taken it over.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("tasks:write")
    task = visible_task(principal, task_id)
    approval = admit_call(tool_call_request(principal, "resume_task", {"taskId": task.id}))
    if task.status != TaskStatus.TAKEOVER:
        raise Conflict("Nobody has taken this task over.", details={"status": task.status})
    with transaction.atomic():
        runs, locked = lock_runs(task.id), lock_task(task.id)
        if locked is None or locked.status != TaskStatus.TAKEOVER:
            raise Conflict("Somebody else gave it back first.")
        use_approval(approval)
        place = task.tenant_id, task.workspace_id
        record(AuditEvent("task.resumed", principal.id, "task", task.id, *place))
        end_takeover(locked, runs, actor=principal.id)
    return task_object(visible_task(principal, task.id), messages=1)


def end_takeover(task: Task, runs: list[Run], *, actor: str) -> None:
    """Give a task that was taken over back to its runs; both are locked by the caller's
    transaction.
    """
    for run in runs:
        resume_after_takeover(run)
    waits = any(run.waiting_for and not run.ready for run in runs)  # for its user
    under_way = TaskStatus.ONGOING if waits else TaskStatus.RUNNING
    move_task(task, under_way if runs else status_after_last_run(task), actor=actor)
    start_next_run(task)
