"""The run itself. `runs.lifecycle.status` is the sole writer of Run.status."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q


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
RETRIABLE = frozenset({RunStatus.FAILED, RunStatus.CANCELED})
# Of a run that carries a direct call, in its options: the decision by which a person let it pass.
APPROVED = "decisionId"
# In a run's options: what was answered to the question that it asked last.
ANSWER = "answer"
# In a run's options: the target for which the process that took it in is in developer mode.
DEVELOPER_TARGET = "developerTarget"
# Among a run's options: the traceparent that the request brought which handed it in.
TRACE = "traceparent"
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
    # The task whose message made it (runs/conversations): its runs take turns.
    task_id = models.CharField(max_length=64, null=True)
    owns_session = models.BooleanField(default=True)
    # Other workers may take steps of this run while its own worker is at it
    # (runs/worker/work_sharing.py).
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
    retry_of = models.CharField(max_length=64, null=True)

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
            models.UniqueConstraint(
                fields=["retry_of"],
                condition=Q(retry_of__isnull=False),
                name="run_is_retried_once",
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
            models.Index(
                fields=["task_id", "created_at", "id"],
                name="run_of_task",
                condition=Q(task_id__isnull=False),
            ),
            # For whose turn it is (runs/queue/dispatch_order.py): the first of each workspace is one probe.
            models.Index(
                fields=["workspace_id", "-status", "created_at", "id"],
                name="run_waiting",
                condition=_UNCLAIMED,
            ),
            # What is under way in any workspace, as the scheduler asks; `IS NULL` has no parameter,
            # which would keep SQLite from using the index.
            models.Index(
                fields=["status"], name="run_not_ended", condition=Q(ended_at__isnull=True)
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
            # What the admin lists, in every workspace, hidden or not. Each change of a run pays for
            # every index that the row is in: other filters walk along the newest.
            models.Index(fields=["-created_at", "-id"], name="run_newest_of_all"),
            models.Index(
                fields=["status", "-created_at", "-id"],
                name="run_ended_badly",
                condition=Q(status__in=["failed", "partial_success", "canceled"]),
            ),
            models.Index(
                fields=["session_id"],
                name="run_by_session",
                condition=Q(session_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def requested_options(self) -> dict[str, Any]:
        """The options that the caller gave: without what a person said of just this run, what
        the command line said of whoever handed it in, and the trace that this was part of.
        """
        own = {ANSWER, APPROVED, DEVELOPER_TARGET, TRACE}
        return {name: told for name, told in self.options.items() if name not in own}
