"""What the hands keep: browser sessions that outlive a run, and the targets that tools run on."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from decisions.infra.ids import new_id


class BrowserSession(models.Model):
    """A named browser session of one principal; it lives in one worker at a time (mechanisms 9).

    Which run uses it is no column here: it is the one run of it that is `running`
    (runs.models.Run, constraint run_session_is_exclusive), so that the lease ends with the run.

    Attributes:
        trust: the trust level of the caller who made it; its pages keep to that one's addresses.
        worker_id: the worker in which its context is open; None: to be restored from its state.
        sealed_state: cookies, storage and last addresses as of `saved_at`, encrypted.
        logged_in_until: when the first of its login cookies ends, where they say so.
        used_at: when a run took it or gave it back last.
    """

    id = models.CharField(primary_key=True, max_length=64)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    principal_id = models.CharField(max_length=80, default="")
    trust = models.CharField(max_length=8, default="local")
    name = models.CharField(max_length=128)
    worker_id = models.CharField(max_length=64, null=True)
    sealed_state = models.BinaryField(null=True)
    cookies = models.IntegerField(default=0)
    logged_in_until = models.DateTimeField(null=True)
    saved_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(trust__in=["local", "remote"]), name="session_trust_level"
            ),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=True)
                | Q(worker_id__isnull=True, sealed_state__isnull=True),
                name="session_closed_keeps_nothing",
            ),
        ]
        indexes = [
            models.Index(
                fields=["workspace_id", "principal_id", "-created_at", "-id"], name="session_newest"
            ),
            models.Index(
                fields=["worker_id"], name="session_live", condition=Q(worker_id__isnull=False)
            ),
            models.Index(
                fields=["used_at"], name="session_to_expire", condition=Q(closed_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return self.name


def new_target_id() -> str:
    """Return a fresh target id."""
    return new_id("target_")


class TargetKind(models.TextChoices):
    """What a target is, and so which tools run on it."""

    DOCKER_RUNNER = "docker-runner"
    BROWSER = "browser"
    PLUGIN = "plugin"
    WORKSPACE = "workspace"


class ExecutionTarget(models.Model):
    """Where tools are executed (S3 §2): a folder, a runner's address, a browser of somebody's.

    Attributes:
        workspace_id: whose alone it is; None: every workspace's of the tenant.
        endpoint: where a runner listens.
        sealed_auth_token: the runner's token, encrypted; never given out.
        is_default: taken by calls that name no target.
        config: by kind; of a workspace {root}, of a runner {timeoutMs, onUnreachable, …}.
        is_local: made by this machine's own command line: its root is that person's choice, and
            only local callers of its workspace see it.
        version: raised by every change; the audit log has what it was before.
        probed_at, probe_error: when its runner was asked for its health last, and why it gave no
            answer; None: it gave one.
        last_seen_at: when it gave one last.
        catalogue: the tools that its runner published when it was probed last
        (`runners.targets.published_tools`).
        catalogue_at, catalogue_error: when it did, and why the last probe could not learn them.
    """

    id = models.CharField(primary_key=True, max_length=64, default=new_target_id, editable=False)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64, null=True)
    kind = models.CharField(max_length=16, choices=TargetKind.choices)
    name = models.CharField(max_length=128)
    endpoint = models.CharField(max_length=500, null=True)
    sealed_auth_token = models.BinaryField(null=True)
    is_default = models.BooleanField(default=False)
    enabled = models.BooleanField(default=True)
    config = models.JSONField(default=dict)
    is_local = models.BooleanField(default=False)
    version = models.IntegerField(default=1)
    probed_at = models.DateTimeField(null=True)
    probe_error = models.CharField(max_length=300, null=True)
    last_seen_at = models.DateTimeField(null=True)
    catalogue = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    catalogue_at = models.DateTimeField(null=True)
    catalogue_error = models.CharField(max_length=300, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=TargetKind.values), name="target_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(is_local=False)
                | Q(is_default=False, kind="workspace", workspace_id__isnull=False),
                name="target_local_is_a_folder",
            ),
            models.UniqueConstraint(
                fields=["workspace_id", "kind"],
                condition=Q(is_default=True, workspace_id__isnull=False),
                name="target_default_of_workspace",
            ),
            models.UniqueConstraint(
                fields=["tenant_id", "kind"],
                condition=Q(is_default=True, workspace_id__isnull=True),
                name="target_default_of_tenant",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant_id", "kind", "-created_at", "-id"], name="target_newest")
        ]

    def __str__(self) -> str:
        return self.name
