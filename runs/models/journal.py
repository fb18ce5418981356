"""The rows of a run: its steps, events, tool calls in flight and secret inputs."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.models.run import Run


class StepStatus(models.TextChoices):
    """The statuses of a step."""

    PENDING = "pending"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


# A step in one of these does not count as done.
UNFINISHED = frozenset({StepStatus.PENDING, StepStatus.STARTED})


class RunStep(models.Model):
    """A step of a run. It is committed as `started` before its effect and with its result after it,
    so a step whose worker died is known to have started.

    Attributes:
        effect_key: identifies the step's effect in every attempt.
        owner, epoch: the worker that executes it and the lease under which it was written last.
        paused: what the step had done when it stopped to wait for a person: its tool calls with
            their outputs, and whether a page was open (`runs.journal.step_records.paused`).
    """

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="steps", db_index=False
    )  # the unique index on (run, index) serves
    index = models.IntegerField()
    name = models.CharField(max_length=200)
    effect = models.CharField(max_length=16)
    effect_key = models.CharField(max_length=96)
    input = models.JSONField(default=dict)
    status = models.CharField(max_length=16, choices=StepStatus.choices, default=StepStatus.PENDING)
    owner = models.CharField(max_length=64, null=True)
    epoch = models.IntegerField(default=0)
    attempts = models.IntegerField(default=0)
    output = models.JSONField(null=True)
    error = models.JSONField(null=True)
    paused = models.JSONField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "index"], name="step_index_per_run"),
            models.CheckConstraint(
                condition=Q(status__in=StepStatus.values), name="step_status_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class RunEvent(models.Model):
    """An event of a run. `seq` counts from 1 without gaps; it is assigned under the run's row
    lock.
    """

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="events", db_index=False
    )  # the unique index on (run, seq) serves
    seq = models.IntegerField()
    type = models.CharField(max_length=32)
    at = models.DateTimeField()
    data = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="event_seq_per_run")]

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"


class OpenCall(models.Model):
    """A tool call in flight: the audit log has its `tool.called` and not yet its end. The process
    that deletes this row writes the end (`runs.lifecycle.in_flight_calls`).

    Attributes:
        opening: the audit event `tool.called`, as a dict.
        run_id, epoch: of a run's call, the lease under which it started.
        process: the process that makes the call (`decisions.foundation.infra.processes`).
    """

    id = models.CharField(primary_key=True, max_length=64)
    opening = models.JSONField()
    run_id = models.CharField(max_length=64, null=True)
    epoch = models.IntegerField(default=0)
    process = models.CharField(max_length=200)
    opened_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["run_id"], name="open_call_of_run")]

    def __str__(self) -> str:
        return self.id


class RunSecret(models.Model):
    """The secret inputs of a run, encrypted. Deleted with the end of the last step that needs them
    (`last_step`), at the latest with the end of the run.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True)
    sealed = models.BinaryField()
    last_step = models.IntegerField()

    def __str__(self) -> str:
        return str(self.run_id)
