"""What a user says in a task, on its way to become a run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import use_approval
from decisions.errors import Conflict, InvalidInput
from decisions.identity.principals import Principal
from decisions.infra.ids import new_id
from decisions.models import Confirmation
from runs.conversations.errors import TaskBusy, TaskNotFound
from runs.conversations.message_queue import lock_task, run_ids_to_cancel
from runs.conversations.run_changes import message_event
from runs.conversations.state import move_task
from runs.events.types import EventType
from runs.lifecycle.changes import NewEvent
from runs.models import MessageRole, Run, Task, TaskMessage, TaskStatus

TEMPLATE = "agent_task"  # what a message of a user is a run of
OnBusy = Literal["queue", "refuse", "interrupt"]
_TITLE_MAX = 80  # characters of a title taken from a message


class DuplicateMessage(Exception):
    """The message with this key is there; nothing was written."""

    def __init__(self, message: TaskMessage) -> None:
        super().__init__(message.id)
        self.message = message


@dataclass
class UserMessage:
    """One message of a user: the `Turn` of the run that it makes, or what an answer brings along.

    Attributes:
        new_task: the task that is made with it, unsaved.
        approval: a person's yes to making that one.
        message: once it was written.
        ahead: the runs that were before it then, that whose turn it was last.
    """

    principal: Principal
    task_id: str
    content: str
    on_busy: OnBusy = "queue"
    key: str = ""
    output_schema: Mapping[str, Any] | None = None
    target_id: str | None = None
    new_task: Task | None = None
    approval: Confirmation | None = None
    message: TaskMessage | None = None
    ahead: list[str] = field(default_factory=list)

    @property
    def message_id(self) -> str:
        """The id of the message once it is written."""
        return "" if self.message is None else self.message.id

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs of its run: what was said before is read from the task
        (`runs.agent.history`).
        """
        where = {"targetId": self.target_id} if self.target_id else {}
        return {"goal": self.content, "taskId": self.task_id, **where}

    @property
    def options(self) -> dict[str, Any]:
        """The options of its run."""
        schema = {} if self.output_schema is None else {"outputSchema": dict(self.output_schema)}
        return {"mode": "async", **schema}

    @property
    def digest(self) -> str:
        """Tells whether two messages under one key are the same."""
        told = orjson.dumps([self.content, self.output_schema], option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(told).hexdigest()

    def known(self) -> TaskMessage | None:
        """Return the message that has this one's key.

        Raises:
            Conflict: It says something else.
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

    def take(self, run: Run) -> None:
        """Write the message, and place its run: it begins when those before it have ended.

        Raises:
            SaidAlready: Somebody was first with its key.
            TaskBusy: A run is under way, and this message does not wait.
            TaskNotFound: The task is gone.
        """
        task = self._locked_task()
        self.ahead = run_ids_to_cancel(task.id)
        if self.ahead and self.on_busy == "refuse":
            raise TaskBusy("A run of this task is under way.", details={"runId": self.ahead[-1]})
        run.task_id = task.id
        run.ready = not self.ahead and task.status != TaskStatus.TAKEOVER
        queued = {"templateId": run.template_id, "mode": run.mode, "runId": run.id}
        self._write(task, run, NewEvent(EventType.RUN_QUEUED, queued))

    def answer(self, run: Run) -> None:
        """Write the message as the answer to a run that asked and goes on now.

        Raises:
            SaidAlready, TaskNotFound: As `take`.
            InvalidInput: It asks for a shape: the run's was set as it began.
        """
        if self.output_schema is not None:
            raise InvalidInput(
                "outputSchema: this would answer a run that asked and has its own; leave it out.",
                details={"runId": run.id},
            )
        run.ready = True
        self._write(self._locked_task(), run)

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
        told = {"messageId": self.message.id, "runId": run.id, "characters": len(self.content)}
        place = task.tenant_id, task.workspace_id
        record(AuditEvent("task.message_added", principal.id, "task", task.id, *place, told))
        trust = "remote" if principal.trust == "remote" else task.trust
        waits = (
            task.status == TaskStatus.ONGOING and not run.ready
        )  # the run before it, for a person
        stays = waits or task.status == TaskStatus.TAKEOVER
        move_task(
            task,
            TaskStatus(task.status) if stays else TaskStatus.RUNNING,
            actor=principal.id,
            events=[message_event(self.message), *more],
            values={"messages_count": task.messages_count, "trust": trust},
            data={"runId": run.id},
        )

    def _locked_task(self) -> Task:
        if self.new_task is not None:
            use_approval(self.approval)
            insert_task(self.new_task)
            return self.new_task
        task = lock_task(self.task_id)
        if task is None:
            raise TaskNotFound(f"There is no task {self.task_id[:64]}.")
        said = self.known()
        if said is not None:
            raise DuplicateMessage(said)
        return task


def record_answer(*, run: Run, answer: str, principal: Principal, **_signal: Any) -> None:
    """Write what was answered at the run's own door into its task (receiver of
    `run_of_task_answered`).
    """
    UserMessage(principal, str(run.task_id), answer).answer(run)


def insert_task(task: Task) -> None:
    """Write a new task with its audit row, in the caller's transaction."""
    task.save(force_insert=True)
    told = {"title": task.title}
    place = task.tenant_id, task.workspace_id
    record(AuditEvent("task.created", task.principal_id, "task", task.id, *place, told))


def title_of(content: str) -> str:
    """Return a title for a task that begins with this message."""
    line = " ".join(content.split())
    return line if len(line) <= _TITLE_MAX else line[: _TITLE_MAX - 1] + "…"
