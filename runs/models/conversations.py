"""Tasks: conversations with the agent (S1 §2). A run refers to its task by id."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class TaskStatus(models.TextChoices):
    """The statuses of a task (S1 §2.1). Only `runs.conversations.state` writes them."""

    CREATED = "created"
    RUNNING = "running"
    ONGOING = "ongoing"
    TAKEOVER = "takeover"
    COMPLETED = "completed"
    ERROR = "error"


class MessageRole(models.TextChoices):
    """The author of a message."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class TaskManager(models.Manager["Task"]):
    """Queries on tasks that several packages share."""

    def is_taken_over(self, task_id: str) -> bool:
        """Return whether a person has taken over the page of a task."""
        return self.filter(id=task_id, status=TaskStatus.TAKEOVER).exists()


class Task(models.Model):
    """A conversation: each message of the user is one run, and they run one after the other.

    Attributes:
        key: the caller's idempotency key.
        session_id: the browser session that its runs use; without one each run has its own.
        selected_client_id: the paired browser of its principal that its runs act in; None: they
            act in the worker's.
        trust: of the caller that created it; no message raises that of its runs.
        used_browser: the running run, or the last one, used a browser.
        taken_over_at: when a person took the page over; None while none has it.
        times_given_back: how often a takeover ended.
    """

    id = models.CharField(primary_key=True, max_length=64)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    principal_id = models.CharField(max_length=80)
    user_id = models.CharField(max_length=128, null=True)
    trust = models.CharField(max_length=8)
    title = models.CharField(max_length=200)
    status = models.CharField(max_length=16, choices=TaskStatus.choices, default=TaskStatus.CREATED)
    target_id = models.CharField(max_length=128, null=True)
    key = models.CharField(max_length=255, null=True)
    session_id = models.CharField(max_length=64, null=True, unique=True)
    selected_client_id = models.CharField(max_length=128, null=True)
    used_browser = models.BooleanField(default=False)
    last_seq = models.IntegerField(default=0)
    messages_count = models.IntegerField(default=0)
    taken_over_at = models.DateTimeField(null=True)
    times_given_back = models.IntegerField(default=0)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = TaskManager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=TaskStatus.values), name="task_status_known"
            ),
            models.CheckConstraint(
                condition=Q(status="takeover", taken_over_at__isnull=False)
                | ~Q(status="takeover") & Q(taken_over_at__isnull=True),
                name="task_takeover_has_its_time",
            ),
            models.UniqueConstraint(fields=["principal_id", "key"], name="task_key_per_principal"),
        ]
        indexes = [
            models.Index(fields=["workspace_id", "-created_at", "-id"], name="task_listed"),
            models.Index(fields=["-created_at", "-id"], name="task_newest_of_all"),
            models.Index(fields=["updated_at"], name="task_to_delete"),
            models.Index(
                fields=["taken_over_at"],
                name="task_taken_over",
                condition=Q(taken_over_at__isnull=False),
            ),
            models.Index(
                fields=["selected_client_id", "-updated_at"],
                name="task_of_browser",
                condition=Q(selected_client_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class TaskMessage(models.Model):
    """A message of a task.

    Attributes:
        run_id: of a user's message, the run that it started or answered; of any other, the run that
            wrote it.
    """

    id = models.CharField(primary_key=True, max_length=64)
    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="messages", db_index=False
    )  # the unique index on (task, number) serves
    number = models.IntegerField()
    role = models.CharField(max_length=16, choices=MessageRole.choices)
    content = models.TextField()
    run_id = models.CharField(max_length=64, null=True)
    principal_id = models.CharField(max_length=80, null=True)
    key = models.CharField(max_length=255, null=True)
    digest = models.CharField(max_length=64, default="")
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "number"], name="message_number_per_task"),
            models.UniqueConstraint(
                fields=["task", "principal_id", "key"], name="message_key_per_task"
            ),
        ]

    def __str__(self) -> str:
        return self.id


class TaskEvent(models.Model):
    """An event of a task. `seq` counts from 1 without gaps; it is assigned under the task's row
    lock.
    """

    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="events", db_index=False
    )  # the unique index on (task, seq) serves
    seq = models.IntegerField()
    type = models.CharField(max_length=32)
    at = models.DateTimeField()
    data = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "seq"], name="task_event_seq_per_task")
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"


class TaskOrigin(models.Model):
    """An origin on which a person allowed a task to act in the person's paired browser.

    Attributes:
        decision_id: the decision that a person confirmed first there.
    """

    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="origins", db_index=False
    )  # the unique index on (task, origin) serves
    origin = models.CharField(max_length=300)
    decision_id = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "origin"], name="origin_once_per_task")
        ]

    def __str__(self) -> str:
        return f"{self.task_id} {self.origin}"


class TaskTicket(models.Model):
    """A single-use, short-lived ticket that opens one WebSocket of a task; the row has a keyed
    digest of it (`runs.conversations.tickets`).
    """

    digest = models.CharField(primary_key=True, max_length=64)
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="tickets")
    principal = models.JSONField()
    expires_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["expires_at"], name="task_ticket_over")]

    def __str__(self) -> str:
        return f"ticket of {self.task_id}"
