"""Create tasks, send messages, stop, take over and resume; REST, the WebSocket and the admin call
these services.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db import IntegrityError, transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.foundation.errors import Conflict, InvalidInput
from decisions.identity.authority import acting_on, check_steers, check_takes_over, sees
from decisions.identity.principals import Principal
from decisions.models import Confirmation
from runners.paired_browser.choice import SELECTED, split_choice
from runners.targets.targets import Caller
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
    new_task,
    title_of,
)
from runs.conversations.selectors import message_object, task_object, visible_task
from runs.conversations.state import move_task, status_after_last_run
from runs.models import Run, RunStatus, Task, TaskMessage, TaskStatus
from runs.submission import cancel, submit
from runs.submission.answer import answer_run
from runs.submission.resume import resume_after_takeover

_NEW_TASK = "A task"  # the title of a task without a message


def create_task(
    *,
    principal: Principal,
    title: str | None = None,
    message: str | None = None,
    target_id: str | None = None,
    selected_client_id: str | None = None,
    output_schema: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> tuple[dict[str, Any], bool]:
    """Create a task, and with a message its first run, in one transaction. Commits.

    Returns the task and whether it is new; the same key again returns the first task.

    Args:
        target_id, selected_client_id: as `paired_browser.choice.split_choice`.

    Raises:
        Conflict: The key is that of a task with another first message.
        InvalidInput, TargetNotFound, NoBrowserPaired: As `paired_browser.choice.split_choice`.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
        Refused: As `submission.submit.submit_run`, if there is a message.
    """
    principal.require("tasks:write")
    first = message, output_schema
    existing = _task_of_key(principal, key, first)
    if existing is not None:
        return task_object(existing, messages=1), False
    given = {
        "title": title,
        "message": message,
        "targetId": target_id,
        SELECTED: selected_client_id,
        "outputSchema": output_schema,
    }
    choice = split_choice(Caller.of(principal), target_id, selected_client_id)
    args = {name: value for name, value in given.items() if value is not None}
    approval = admit_call(tool_call_request(principal, "create_task", args, key=key or ""))
    task = new_task(
        principal,
        title or title_of(message or _NEW_TASK),
        target_id=choice.target_id,
        selected_client_id=choice.client_id,
        key=key,
    )
    try:
        _write_task(task, principal, message, output_schema, approval)
    except IntegrityError:
        existing = _task_of_key(principal, key, first)  # created by a concurrent request
        if existing is None:
            raise
        return task_object(existing, messages=1), False
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
        selected_client_id=task.selected_client_id,
        key=task.key or "",
        new_task=task,
        approval=approval,
    )
    _submit(first)


def _task_of_key(
    principal: Principal, key: str | None, first: tuple[str | None, Mapping[str, Any] | None]
) -> Task | None:
    """Return the task that has this key and this first message, or None.

    Raises:
        Conflict: The task has another first message, so this one would be lost; or it was created
            with a higher trust level.
    """
    if key is None:
        return None
    mine = Task.objects.filter(principal_id=principal.id, workspace_id=principal.workspace_id)
    task, (message, schema) = mine.filter(key=key).first(), first
    if task is not None and not sees(principal, task):
        raise Conflict("idempotencyKey: it was used from this machine; use another key.")
    if task is not None and message is not None:
        sent = UserMessage(principal, task.id, message, key=key, output_schema=schema)
        if sent.find_duplicate() is None:
            raise Conflict(
                "idempotencyKey: it was used for a task without this message; use another key.",
                details={"taskId": task.id},
            )
    return task


def add_message(
    *,
    principal: Principal,
    task_id: str,
    content: str,
    on_busy: OnBusy = "queue",
    output_schema: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> dict[str, Any]:
    """Send a message to a task. Commits.

    If a run of the task waits for an answer, the message is that answer; else it gets a run of its
    own, which starts after those before it. Returns {taskId, message, runId, queued, deduplicated};
    the same key again returns the first message.

    Args:
        on_busy: if the task has unfinished runs: queue waits for them, refuse raises TaskBusy,
            interrupt cancels them.

    Raises:
        TaskNotFound: As `selectors.visible_task`.
        Forbidden: As `authority.check_steers`.
        TaskBusy: With on_busy refuse.
        Refused: As `submission.submit.submit_run`.
    """
    principal.require("tasks:write")
    task = visible_task(principal, task_id)
    principal = acting_on(principal, task)
    check_steers(principal, task, task.selected_client_id)
    message = UserMessage(
        principal,
        task.id,
        content,
        on_busy=on_busy,
        output_schema=output_schema,
        key=key or "",
        target_id=task.target_id,
        session_id=task.session_id,
        selected_client_id=task.selected_client_id,
    )
    duplicate = message.find_duplicate()
    if duplicate is not None:
        return _sent_message(task.id, duplicate, deduplicated=True)
    try:
        _deliver(message)
    except DuplicateMessage as first:
        return _sent_message(task.id, first.message, deduplicated=True)
    row = TaskMessage.objects.get(id=message.message_id)
    return _sent_message(task.id, row, deduplicated=False)


def _deliver(message: UserMessage) -> None:
    """Write the message as the answer to a waiting run, or with a run of its own."""
    waiting = _waiting_run(message)
    while waiting is not None:
        try:
            answer_run(
                principal=_with_submit_scope(message.principal),
                run_id=waiting.id,
                answer=message.content,
                also_write=message.write_as_answer,
            )
        except InvalidInput:  # it was answered or ended meanwhile: another run may wait now
            before, waiting = waiting.epoch, _waiting_run(message)
            if waiting is not None and waiting.epoch == before:
                raise
        else:
            return
    _submit(message)
    if message.on_busy == "interrupt":
        by = message.principal.id
        _cancel_runs(message.runs_ahead, by=by, reason="Interrupted by a message.")


def _waiting_run(message: UserMessage) -> Run | None:
    """Return the run whose question the message answers, or None."""
    if message.on_busy == "interrupt":
        return None
    return unfinished_runs(message.task_id).filter(waiting_for__type="answer").first()


def _submit(message: UserMessage) -> None:
    submit.submit_run(
        principal=_with_submit_scope(message.principal),
        template_id=TEMPLATE,
        inputs=message.inputs,
        session_id=message.session_id,
        options=message.options,
        message=message,
    )


def _with_submit_scope(principal: Principal) -> Principal:
    """Return the caller with runs:write: tasks:write includes the agent's runs."""
    return replace(principal, scopes=principal.scopes | {"runs:write"})


def _sent_message(task_id: str, message: TaskMessage, *, deduplicated: bool) -> dict[str, Any]:
    run = Run.objects.filter(id=message.run_id).first()
    return {
        "taskId": task_id,
        "message": message_object(message),
        "runId": message.run_id,
        "queued": run is not None and run.ended_at is None and not is_current(run),
        "deduplicated": deduplicated,
    }


def stop_task(*, principal: Principal, task_id: str, at_browser: bool = False) -> dict[str, Any]:
    """Cancel all unfinished runs of a task, and end a takeover; return the task. Commits; safe to
    repeat.

    Args:
        at_browser: as `_admit`.

    Raises:
        TaskNotFound: As `selectors.visible_task`.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("tasks:write")
    task = visible_task(principal, task_id)
    approval = _admit(principal, "stop_task", task.id, at_browser=at_browser)
    with transaction.atomic():
        use_approval(approval)
        scope = task.tenant_id, task.workspace_id
        record(AuditEvent("task.stopped", principal.id, "task", task.id, *scope))
    _cancel_runs(run_ids_to_cancel(task.id), by=principal.id, reason="The task was stopped.")
    with transaction.atomic():
        runs, locked = lock_runs(task.id), lock_task(task.id)
        if locked is not None and locked.status == TaskStatus.TAKEOVER and not runs:
            move_task(locked, status_after_last_run(locked), actor=principal.id)
    return task_object(visible_task(principal, task.id), messages=1)


def _admit(
    principal: Principal, tool: str, task_id: str, *, at_browser: bool
) -> Confirmation | None:
    """Admit a call on a task, as `admit_call`.

    Args:
        at_browser: the person at the browser in which the task acts makes the call. No rule keeps
            them from their own page.
    """
    if at_browser:
        return None
    return admit_call(tool_call_request(principal, tool, {"taskId": task_id}))


def _cancel_runs(run_ids: list[str], *, by: str, reason: str) -> None:
    for run_id in run_ids:
        cancel.cancel_authorized_run(run_id, by=by, reason=reason)


def take_over_task(
    *, principal: Principal, task_id: str, reason: str | None = None, at_browser: bool = False
) -> dict[str, Any]:
    """Give the page to a person; return the task. Commits; safe to repeat.

    No further tool is called. A call in flight ends by itself; then the run is suspended, and its
    active time stops.

    Args:
        reason: what at the paired browser started the takeover; for the log.
        at_browser: as `_admit`.

    Raises:
        TaskNotFound: As `selectors.visible_task`.
        Forbidden: As `authority.check_takes_over`.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("tasks:write")
    seen = visible_task(principal, task_id)
    check_takes_over(principal, seen, seen.selected_client_id)
    approval = _admit(principal, "take_over_task", task_id, at_browser=at_browser)
    with transaction.atomic():
        runs, task = lock_runs(task_id), lock_task(task_id)
        if task is not None and task.status != TaskStatus.TAKEOVER:
            use_approval(approval)
            for run in runs:
                if run.status == RunStatus.QUEUED and run.ready:
                    hold_back(run)
            scope = task.tenant_id, task.workspace_id
            record(AuditEvent("task.taken_over", principal.id, "task", task.id, *scope))
            by = principal.id
            data = {"by": by} | ({"reason": reason} if reason else {})
            move_task(task, TaskStatus.TAKEOVER, actor=by, data=data)
    return task_object(visible_task(principal, task_id), messages=1)


def resume_task(*, principal: Principal, task_id: str, at_browser: bool = False) -> dict[str, Any]:
    """End a takeover: the suspended run continues, or that of the next message starts; return the
    task. Commits.

    Args:
        at_browser: as `_admit`.

    Raises:
        TaskNotFound: As `selectors.visible_task`.
        Forbidden: As `authority.check_steers`.
        Conflict: The task is not taken over.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("tasks:write")
    task = visible_task(principal, task_id)
    check_steers(principal, task, task.selected_client_id)
    approval = _admit(principal, "resume_task", task.id, at_browser=at_browser)
    if task.status != TaskStatus.TAKEOVER:
        raise Conflict("This task is not taken over.", details={"status": task.status})
    with transaction.atomic():
        runs, locked = lock_runs(task.id), lock_task(task.id)
        if locked is None or locked.status != TaskStatus.TAKEOVER:
            raise Conflict("The takeover was ended by another request.")
        use_approval(approval)
        scope = task.tenant_id, task.workspace_id
        record(AuditEvent("task.resumed", principal.id, "task", task.id, *scope))
        end_takeover(locked, runs, actor=principal.id)
    return task_object(visible_task(principal, task.id), messages=1)


def end_takeover(task: Task, runs: list[Run], *, actor: str) -> None:
    """End a takeover: requeue the run that waits for the page, or start the next one, and set the
    task's status. The caller's transaction has locked the task and its runs.
    """
    for run in runs:
        resume_after_takeover(run)
    is_suspended = any(run.waiting_for and not run.ready for run in runs)  # for another reason
    status_with_runs = TaskStatus.ONGOING if is_suspended else TaskStatus.RUNNING
    move_task(task, status_with_runs if runs else status_after_last_run(task), actor=actor)
    start_next_run(task)
