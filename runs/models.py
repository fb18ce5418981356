"""The rows of the work. `runs.state` is the sole writer of Run.status."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.webhook_models import DeliveryStatus as DeliveryStatus
from runs.webhook_models import Webhook as Webhook
from runs.webhook_models import WebhookDelivery as WebhookDelivery


class RunStatus(models.TextChoices):
    """S0 §3.1, frozen."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PARTIAL_SUCCESS = "partial_success"
    CANCELED = "canceled"


TERMINAL = frozenset(
    {RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.PARTIAL_SUCCESS, RunStatus.CANCELED}
)
ACTIVE = frozenset({RunStatus.QUEUED, RunStatus.RUNNING})
_FILTERED = {
    "": [],
    "_by_status": ["status"],
    "_by_template": ["template_id"],
    "_by_both": ["status", "template_id"],
}
_UNCLAIMED = Q(ready=True, lease_owner__isnull=True, status__in=["queued", "running"])


class Run(models.Model):
    """A piece of work that was accepted.

    Eligible to be claimed is columns, not only status (mechanisms 2): ready, no lease, queued or
    running. `epoch` grows with every claim and every lost lease; a worker's write tests it.
    """

    id = models.CharField(primary_key=True, max_length=64)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    principal_id = models.CharField(max_length=80)
    user_id = models.CharField(max_length=128, null=True)
    trust = models.CharField(max_length=8)
    template_id = models.CharField(max_length=128)
    template_version = models.CharField(max_length=32)
    mode = models.CharField(max_length=8)
    inputs = models.JSONField()
    options = models.JSONField(default=dict)
    session_id = models.CharField(max_length=64)
    owns_session = models.BooleanField(default=True)
    # Other workers may take steps of this run while its own worker is at it (runs/portions.py).
    shared = models.BooleanField(default=False)
    # Credentials came with it (RunSecret), which are not kept: it cannot be retried.
    holds_secrets = models.BooleanField(default=False, db_default=False)

    status = models.CharField(max_length=16, choices=RunStatus.choices)
    ready = models.BooleanField(default=True)
    waiting_for = models.JSONField(null=True)
    lease_owner = models.CharField(max_length=64, null=True)
    # The worker that holds this run's live session; nobody else claims the run while it lives.
    pinned_worker = models.CharField(max_length=64, null=True)
    epoch = models.IntegerField(default=0)
    times_lost = models.IntegerField(default=0)

    total_steps = models.IntegerField()
    done_steps = models.IntegerField(default=0)
    last_seq = models.IntegerField(default=0)
    timeout_ms = models.IntegerField()
    active_ms = models.BigIntegerField(default=0)

    result = models.JSONField(null=True)
    result_summary = models.CharField(max_length=500, default="", blank=True)
    error = models.JSONField(null=True)
    warnings = models.JSONField(default=list)
    next_actions = models.JSONField(default=list)
    retry_of = models.CharField(max_length=64, null=True, unique=True)

    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    # Past its runTtl: gone from the API, still in the admin.
    hidden_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=RunStatus.values), name="run_status_known"
            ),
            models.CheckConstraint(
                condition=Q(status__in=["queued", "running"], ended_at__isnull=True)
                | Q(status__in=["succeeded", "failed", "partial_success", "canceled"])
                & Q(ended_at__isnull=False, lease_owner__isnull=True, waiting_for__isnull=True),
                name="run_ended_iff_terminal",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["failed", "canceled"]) | Q(error__isnull=False),
                name="run_failure_is_explained",
            ),
            # The lease of a named session: one run at a time, from its start to its end.
            models.UniqueConstraint(
                fields=["session_id"],
                condition=Q(status="running", owns_session=False),
                name="run_session_is_exclusive",
            ),
        ]
        indexes = [
            # What the API lists, one for each way to filter; what is out of its sight is in none.
            *(
                models.Index(
                    fields=["workspace_id", *kept, "-created_at", "-id"],
                    name=f"run_seen{name}",
                    condition=Q(hidden_at__isnull=True),
                )
                for name, kept in _FILTERED.items()
            ),
            # For whose turn it is (runs/turn.py): the first of each workspace is one probe.
            models.Index(
                fields=["workspace_id", "-status", "created_at", "id"],
                name="run_waiting",
                condition=_UNCLAIMED,
            ),
            models.Index(
                fields=["lease_owner"], name="run_leased", condition=Q(lease_owner__isnull=False)
            ),
            models.Index(
                fields=["ended_at"],
                name="run_to_hide",
                condition=Q(hidden_at__isnull=True, ended_at__isnull=False),
            ),
            models.Index(
                fields=["started_at"],
                name="run_shared",
                condition=Q(shared=True, status="running"),
            ),
            models.Index(
                fields=["ended_at"], name="run_to_delete", condition=Q(hidden_at__isnull=False)
            ),
            # What the admin lists, in every workspace, hidden or not.
            models.Index(fields=["-created_at", "-id"], name="run_newest_of_all"),
            models.Index(fields=["status", "-created_at", "-id"], name="run_by_status_of_all"),
            models.Index(
                fields=["template_id", "-created_at", "-id"], name="run_by_template_of_all"
            ),
            models.Index(fields=["workspace_id", "-created_at", "-id"], name="run_by_workspace"),
            models.Index(fields=["session_id"], name="run_by_session"),
        ]

    def __str__(self) -> str:
        return self.id


class RunTotal(models.Model):
    """How many runs of a workspace are not hidden, by template and status, as far as
    `RunTotalChange` was folded (`runs.totals`).
    """

    workspace_id = models.CharField(max_length=64)
    template_id = models.CharField(max_length=128)
    status = models.CharField(max_length=16)
    number = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id", "template_id", "status"], name="run_total_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.status}"


class RunTotalChange(models.Model):
    """A run that came into sight, changed its status, or went out of sight (`runs.totals`)."""

    workspace_id = models.CharField(max_length=64)
    template_id = models.CharField(max_length=128)
    was = models.CharField(max_length=16, null=True)
    became = models.CharField(max_length=16, null=True)
    number = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.was} -> {self.became}"


class RunSecret(models.Model):
    """The secret inputs of a run, sealed; gone when the last step that needs them is over, or the
    run is (mechanisms 11).
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True)
    sealed = models.BinaryField()
    last_step = models.IntegerField()

    def __str__(self) -> str:
        return str(self.run_id)


class RunKey(models.Model):
    """A caller's idempotency key: one run per (principal, template, key) while it lives (S0
    §4.1.1).
    """

    principal_id = models.CharField(max_length=80)
    template_id = models.CharField(max_length=128)
    key = models.CharField(max_length=255)
    run_id = models.CharField(max_length=64)
    inputs_digest = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["principal_id", "template_id", "key"], name="run_key_per_principal"
            )
        ]

    def __str__(self) -> str:
        return self.key


class StepStatus(models.TextChoices):
    """Where a step of the journal stands."""

    PENDING = "pending"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


class RunStep(models.Model):
    """One line of a run's journal: written `started` before its effect, its result after
    (reliability rule 4).
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


class Slot(models.Model):
    """The right of one run to run: a row, never a count (reliability rule 3)."""

    number = models.IntegerField(primary_key=True)
    run_id = models.CharField(max_length=64, null=True, unique=True)
    workspace_id = models.CharField(max_length=64, null=True)
    worker_id = models.CharField(max_length=64, null=True)
    epoch = models.IntegerField(default=0)

    def __str__(self) -> str:
        return str(self.number)


class OutboxEntry(models.Model):
    """A doorbell that has to ring until somebody claims the run; written with the run, deleted by
    its claim.
    """

    run_id = models.CharField(primary_key=True, max_length=64)
    queue = models.CharField(max_length=96)
    rung_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "outbox entries"
        indexes = [models.Index(fields=["rung_at"], name="outbox_rung")]

    def __str__(self) -> str:
        return self.run_id


class Worker(models.Model):
    """A worker process that takes runs; its `beat` is the lease of all it took (mechanisms 5)."""

    id = models.CharField(primary_key=True, max_length=64)
    # Machine, pid namespace, pid and start time: tells whether the process is gone, on its own
    # machine.
    process = models.CharField(max_length=200)
    host = models.CharField(max_length=255)
    beat = models.BigIntegerField(default=0)
    started_at = models.DateTimeField()
    lost_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.id
