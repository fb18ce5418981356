"""Write a user's message to a task: with a run of its own, or as the answer to a run's question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import use_approval
from decisions.foundation.errors import Conflict, InvalidInput
from decisions.foundation.infra.ids import new_id
from decisions.foundation.security.url_credentials import mask_url_credentials
from decisions.foundation.validation.json_output import json_digest
from decisions.identity.principals import Principal
from decisions.models import Confirmation
from runners.paired_browser.choice import SELECTED
from runs.conversations.errors import TaskBusy, TaskNotFound
from runs.conversations.message_queue import lock_task, run_ids_to_cancel
from runs.conversations.run_changes import message_event
from runs.conversations.state import move_task
from runs.events.types import EventType
from runs.lifecycle.changes import NewEvent
from runs.models import MessageRole, Run, Task, TaskMessage, TaskStatus

TEMPLATE = "agent_task"  # of the run that a message is submitted as
OnBusy = Literal["queue", "refuse", "interrupt"]
_TITLE_MAX = 80  # characters of a title taken from a message


class DuplicateMessage(Exception):
    """A message with this idempotency key exists; nothing was written."""

    def __init__(self, message: TaskMessage) -> None:
        super().__init__(message.id)
        self.message = message


@dataclass
class UserMessage:
    """A message that a user sends to a task; the `PendingMessage` of the run that answers it.

    Attributes:
        session_id: the browser session of the task; None if each of its runs has its own.
        selected_client_id: the paired browser that the task acts in; None: the worker's.
        new_task: the unsaved task that is created with the message.
        approval: the confirmation of creating that task.
        message: the row, once it is written.
        runs_ahead: ids of the unfinished runs that were before it when it was written; the task's
            current run last.
    """

    principal: Principal
    task_id: str
    content: str
    on_busy: OnBusy = "queue"
    key: str = ""
    output_schema: Mapping[str, Any] | None = None
    target_id: str | None = None
    session_id: str | None = None
    selected_client_id: str | None = None
    new_task: Task | None = None
    approval: Confirmation | None = None
    message: TaskMessage | None = None
    runs_ahead: list[str] = field(default_factory=list)

    @property
    def message_id(self) -> str:
        """The id of the message once it is written."""
        return "" if self.message is None else self.message.id

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs of its run, which reads earlier messages itself (`runs.agent.history`)."""
        chosen = {"targetId": self.target_id, SELECTED: self.selected_client_id}
        given = {name: value for name, value in chosen.items() if value is not None}
        return {"goal": self.content, "taskId": self.task_id, **given}

    @property
    def options(self) -> dict[str, Any]:
        """The options of its run."""
        schema = {} if self.output_schema is None else {"outputSchema": dict(self.output_schema)}
        return {"mode": "async", **schema}

    @property
    def digest(self) -> str:
        """The digest of content and output schema, to compare two messages with one key."""
        return json_digest([self.content, self.output_schema]).hex()

    def find_duplicate(self) -> TaskMessage | None:
        """Return the task's message with the same idempotency key, or None.

        Raises:
            Conflict: That message has another content or output schema.
        """
        if not self.key:
            return None
        found = TaskMessage.objects.filter(
            task_id=self.task_id, principal_id=self.principal.id, key=self.key
        ).first()
        if found is not None and found.digest != self.digest:
            raise Conflict(
                "idempotencyKey: it was used for another message in this task.",
                details={"messageId": found.id},
            )
        return found

    def attach(self, run: Run) -> None:
        """Write the message and assign its run to the task; the run starts after those before it.

        Raises:
            DuplicateMessage: A concurrent request wrote a message with the same key first.
            TaskBusy: The task has a current run, and `on_busy` is refuse.
            TaskNotFound: The task was deleted.
        """
        if self.new_task is not None:
            self.new_task.selected_client_id = run.inputs.get(SELECTED)
        task = self._lock_or_insert_task()
        if run.inputs.get(SELECTED) != task.selected_client_id:
            raise InvalidInput(f"inputs.{SELECTED}: the task acts in another browser; omit it.")
        self.runs_ahead = run_ids_to_cancel(task.id)
        if self.runs_ahead and self.on_busy == "refuse":
            raise TaskBusy("A run of this task is running.", details={"runId": self.runs_ahead[-1]})
        run.task_id = task.id
        run.ready = not self.runs_ahead and task.status != TaskStatus.TAKEOVER
        queued = {"templateId": run.template_id, "mode": run.mode, "runId": run.id}
        self._write(task, run, NewEvent(EventType.RUN_QUEUED, queued))

    def write_as_answer(self, run: Run) -> None:
        """Write the message as the answer to the run's question; the caller requeues the run.

        Raises:
            DuplicateMessage, TaskNotFound: As `attach`.
            InvalidInput: The message has an output schema; the run's was set when it started.
        """
        if self.output_schema is not None:
            raise InvalidInput(
                "outputSchema: the message answers a run that has its own; omit it.",
                details={"runId": run.id},
            )
        run.ready = True
        self._write(self._lock_or_insert_task(), run)

    def _write(self, task: Task, run: Run, *more: NewEvent) -> None:
        principal = self.principal
        self.message = TaskMessage.objects.create(
            id=new_id("tmsg_"),
            task_id=task.id,
            number=task.messages_count + 1,
            role=MessageRole.USER,
            content=self.content,
            run_id=run.id,
            principal_id=principal.id,
            key=self.key or None,
            digest=self.digest,
            at=datetime.now(UTC),
        )
        task.messages_count += 1
        details = {"messageId": self.message.id, "runId": run.id, "characters": len(self.content)}
        scope = task.tenant_id, task.workspace_id
        record(AuditEvent("task.message_added", principal.id, "task", task.id, *scope, details))
        # Ongoing and not ready: the run before this one is suspended for a person.
        is_behind_suspended = task.status == TaskStatus.ONGOING and not run.ready
        keeps_status = is_behind_suspended or task.status == TaskStatus.TAKEOVER
        move_task(
            task,
            TaskStatus(task.status) if keeps_status else TaskStatus.RUNNING,
            actor=principal.id,
            events=[message_event(self.message), *more],
            values={"messages_count": task.messages_count},
            data={"runId": run.id},
        )

    def _lock_or_insert_task(self) -> Task:
        if self.new_task is not None:
            use_approval(self.approval)
            insert_task(self.new_task)
            return self.new_task
        task = lock_task(self.task_id)
        if task is None:
            raise TaskNotFound(f"There is no task {self.task_id[:64]}.")
        duplicate = self.find_duplicate()
        if duplicate is not None:
            raise DuplicateMessage(duplicate)
        return task


def record_answer(*, run: Run, answer: str, principal: Principal, **_signal: Any) -> None:
    """Write an answer that was given through the run's API as a message of its task (receiver of
    `run_of_task_answered`).
    """
    UserMessage(principal, str(run.task_id), answer).write_as_answer(run)


def new_task(
    principal: Principal,
    title: str,
    *,
    target_id: str | None = None,
    key: str | None = None,
    session_id: str | None = None,
    selected_client_id: str | None = None,
) -> Task:
    """Return a new task of a principal, not yet written."""
    now = datetime.now(UTC)
    return Task(
        id=new_id("task_"),
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
        user_id=principal.user_id,
        trust=principal.trust,
        title=mask_url_credentials(title),
        target_id=target_id,
        key=key,
        session_id=session_id,
        selected_client_id=selected_client_id,
        created_at=now,
        updated_at=now,
    )


def insert_task(task: Task) -> None:
    """Write a new task and its audit event, in the caller's transaction."""
    task.save(force_insert=True)
    details = {"title": task.title}
    scope = task.tenant_id, task.workspace_id
    record(AuditEvent("task.created", task.principal_id, "task", task.id, *scope, details))


def title_of(content: str) -> str:
    """Return a title for a task whose first message this is."""
    line = " ".join(content.split())
    return line if len(line) <= _TITLE_MAX else line[: _TITLE_MAX - 1] + "…"
