"""What a run is made of: its steps, its events, its secrets."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.models.run import Run


class StepStatus(models.TextChoices):
    """Where a step of the journal stands."""

    PENDING = "pending"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


# Not over: nothing of the run is counted as done by it.
UNFINISHED = frozenset({StepStatus.PENDING, StepStatus.STARTED})


class RunStep(models.Model):
    """One line of a run's journal: written `started` before its effect, its result after
    (reliability rule 4).

    Attributes:
        paused: what a step had done when it stopped for a person: the calls that it made, with
            what they answered, and whether a page was open (`runs.execution.suspension`).
    """

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="steps", db_index=False
    )  # (run, index) is unique, and serves
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
    """One line of a run's ordered log; seq counts from 1 without gaps, given under the run's row
    lock.
    """

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="events", db_index=False
    )  # (run, seq) is unique, and serves
    seq = models.IntegerField()
    type = models.CharField(max_length=32)
    at = models.DateTimeField()
    data = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="event_seq_per_run")]

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"


class OpenCall(models.Model):
    """A call that the audit log has told the beginning of and not yet the end: whoever deletes the
    row tells it (`runs.lifecycle.in_flight_calls`).

    Attributes:
        opening: the audit row that told its beginning.
        run_id, epoch: of a call of a run: the lease under which it began.
        process: where it is made (`decisions.infra.processes`).
    """

    id = models.CharField(primary_key=True, max_length=64)
    opening = models.JSONField()
    run_id = models.CharField(max_length=64, null=True)
    epoch = models.IntegerField(default=0)
    process = models.CharField(max_length=200)
    opened_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["run_id"], name="start_run_call")]

    def __str__(self) -> str:
        return self.id


class RunSecret(models.Model):
    """The secret inputs of a run, sealed; gone when the last step that needs them is over, or the
    run is (mechanisms 11).
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True)
    sealed = models.BinaryField()
    last_step = models.IntegerField()

    def __str__(self) -> str:
        return str(self.run_id)
