"""Runs. Only `runs.lifecycle.state_machine` writes Run.status."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q


class RunStatus(models.TextChoices):
    """The statuses of a run (S0 §3.1)."""

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
# Keys of a run's options.
# Of a run that makes a direct call: the id of the decision by which a person approved the call.
APPROVED = "decisionId"
# The answer to the run's last question.
ANSWER = "answer"
# The target for which the submitting process was in developer mode.
DEVELOPER_TARGET = "developerTarget"
# The `traceparent` header of the submitting request.
TRACE = "traceparent"
# The template of a browser action that an agent host performs; each one is a run.
HOST_ACTION = "session_action"
SUBMITTED = ~Q(template_id=HOST_ACTION)
_FILTERED = {
    "": [],
    "_by_status": ["status"],
    "_by_template": ["template_id"],
    "_by_both": ["status", "template_id"],
}
_UNCLAIMED = Q(ready=True, lease_owner__isnull=True, status__in=["queued", "running"])


class Run(models.Model):
    """A run: a durable execution of a template with inputs.

    A worker may claim it while it is ready, queued or running, and without a lease.

    Attributes:
        task_id: the task whose message started it; a task's runs run one after the other.
        owns_session: its browser session was created for it, and no other run uses it.
        shared: other workers may execute some of its steps (`runs.queue.work_sharing`).
        holds_secrets: it was submitted with secret inputs (RunSecret). They are not stored for
            later, so it cannot be retried.
        ready: False while it waits, for a person or for the earlier run of its task.
        waiting_for: what it waits for: a confirmation, an answer, or the end of a takeover.
        lease_owner: the id of the worker that has claimed it.
        pinned_worker: the worker that holds its live session; no other worker claims the run while
            that one is alive.
        epoch: rises with every claim and every end of a lease; a worker's write tests it.
        times_lost: how often its lease expired.
        losses_without_progress: how often since one of its steps ended.
        active_ms: its running time, without the time that it waited for a person.
        subject: what it is about, on one line, from its inputs (`TaskTemplate.subject`); None for
            a run that an older version submitted, until the scheduler fills it in.
        labels: the caller's labels by name; None without any.
        error_code, error_cause: `errorCode` and `details.causeCode` of its error; else empty.
        error_site: the host of the page that it failed on, else that its subject begins with
            (`runs.search.sites`); else empty.
        again_of: the run that a person submitted again as this one, perhaps with other inputs.
        hidden_at: when it passed RUN_TTL_MS: from then on only the admin shows it.
        others_wait: of a run chosen to be claimed, not stored: false if no other run waited then.
    """

    others_wait = True
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
    subject = models.CharField(max_length=200, null=True)
    labels = models.JSONField(null=True)
    session_id = models.CharField(max_length=64)
    task_id = models.CharField(max_length=64, null=True)
    owns_session = models.BooleanField(default=True)
    shared = models.BooleanField(default=False)
    holds_secrets = models.BooleanField(default=False, db_default=False)

    status = models.CharField(max_length=16, choices=RunStatus.choices)
    ready = models.BooleanField(default=True)
    waiting_for = models.JSONField(null=True)
    lease_owner = models.CharField(max_length=64, null=True)
    pinned_worker = models.CharField(max_length=64, null=True)
    epoch = models.IntegerField(default=0)
    times_lost = models.IntegerField(default=0)
    losses_without_progress = models.IntegerField(default=0, db_default=0)

    total_steps = models.IntegerField()
    done_steps = models.IntegerField(default=0)
    last_seq = models.IntegerField(default=0)
    timeout_ms = models.IntegerField()
    active_ms = models.BigIntegerField(default=0)

    result = models.JSONField(null=True)
    result_summary = models.CharField(max_length=500, default="", blank=True)
    error = models.JSONField(null=True)
    error_code = models.CharField(max_length=64, default="", db_default="", blank=True)
    error_cause = models.CharField(max_length=64, default="", db_default="", blank=True)
    error_site = models.CharField(max_length=100, default="", db_default="", blank=True)
    warnings = models.JSONField(default=list)
    next_actions = models.JSONField(default=list)
    retry_of = models.CharField(max_length=64, null=True)
    again_of = models.CharField(max_length=64, null=True)

    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
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
            # The lease of a named session: one running run at a time.
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
            # What the API lists, an index for each filter; hidden runs are in none.
            *(
                models.Index(
                    fields=["workspace_id", *columns, "-created_at", "-id"],
                    name=f"run_seen{name}",
                    condition=Q(hidden_at__isnull=True),
                )
                for name, columns in _FILTERED.items()
            ),
            models.Index(
                fields=["task_id", "created_at", "id"],
                name="run_of_task",
                condition=Q(task_id__isnull=False),
            ),
            # For the dispatch order: the first run of each workspace is one probe.
            models.Index(
                fields=["workspace_id", "-status", "created_at", "id"],
                name="run_waiting",
                condition=_UNCLAIMED,
            ),
            # For the scheduler: queued and running runs. `IS NULL` has no parameter, which would
            # keep SQLite from using the index.
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
            # What the admin lists, in every workspace, hidden or not. Every index slows each update
            # of a run down, so other filters scan the newest.
            models.Index(fields=["-created_at", "-id"], name="run_newest_of_all"),
            # The same without the browser actions of agent hosts, of which there may be many more.
            models.Index(
                fields=["-created_at", "-id"], name="run_newest_submitted", condition=SUBMITTED
            ),
            models.Index(
                fields=["-active_ms", "-id"],
                name="run_longest",
                condition=Q(ended_at__isnull=False),
            ),
            # For the scheduler: runs of an older version, whose terms are not written yet.
            models.Index(
                fields=["-created_at", "-id"],
                name="run_without_subject",
                condition=Q(subject__isnull=True),
            ),
            models.Index(
                fields=["status", "-created_at", "-id"],
                name="run_ended_badly",
                condition=Q(status__in=["failed", "partial_success", "canceled"]),
            ),
            models.Index(
                fields=["again_of"],
                name="run_submitted_again",
                condition=Q(again_of__isnull=False),
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
        """The options that the caller gave, with the labels as they are now, and without those that
        we added to this run.
        """
        ours = {ANSWER, APPROVED, DEVELOPER_TARGET, TRACE}
        given = {name: value for name, value in self.options.items() if name not in ours}
        return {**given, "labels": self.labels} if self.labels else given


class RunTerms(models.Model):
    """The terms by which a run is found (`runs.search.terms`), separated by spaces.

    In a table of its own, since each change of a run's row would write the index of terms again.
    """

    run = models.ForeignKey(
        Run,
        on_delete=models.CASCADE,
        db_constraint=False,  # an older version deletes runs without their terms
        db_index=False,
        related_name="terms",
    )
    terms = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run"], name="run_terms_once")]

    def __str__(self) -> str:
        return self.run_id
