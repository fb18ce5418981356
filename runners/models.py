"""Tables of runners: named browser sessions, the execution targets that tools run on, and the
browsers that people paired.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from decisions.foundation.infra.ids import new_id


class BrowserSession(models.Model):
    """A named browser session of one principal; it is open in at most one worker at a time.

    The run that uses it is not a column here: it is the session's only run with status `running`
    (runs.models.Run, constraint run_session_is_exclusive), so the session's lease ends with the
    run.

    Attributes:
        trust: the trust level of the caller who created it; it decides which addresses its pages
            may reach.
        worker_id: the worker in which its browser context is open; None: it is restored from
            `sealed_state` when a run needs it.
        sealed_state: cookies, storage and last URLs as of `saved_at`, encrypted.
        logged_in_until: when the first of its login cookies expires; None if none has an expiry.
        used_at: when a run last acquired or released it.
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
    """Return a new target id."""
    return new_id("target_")


class TargetKind(models.TextChoices):
    """The kind of a target; it decides which tools run on it."""

    DOCKER_RUNNER = "docker-runner"
    BROWSER = "browser"
    PLUGIN = "plugin", "Paired browser"
    WORKSPACE = "workspace"


class ExecutionTarget(models.Model):
    """Where tools are executed (S3 §2): a folder, a runner's endpoint, or a user's browser.

    Attributes:
        workspace_id: the workspace that it belongs to; None: shared by all workspaces of the
            tenant.
        endpoint: the URL of a runner.
        opened_address: its endpoint's address and port on loopback, which the command line of this
            machine opened for this target alone; else empty.
        sealed_auth_token: the runner's token, encrypted; no API returns it.
        is_default: used by calls that name no target.
        config: depends on the kind: {root} of a workspace, {timeoutMs, onUnreachable, …} of a
            runner.
        is_local: created by the command line of this machine, so its root may be any folder; only
            local callers of its workspace see it.
        version: incremented by every change; the audit log has the earlier values.
        probed_at, probe_error: when its runner's health was last probed, and why that failed;
            None: it succeeded.
        last_seen_at: when a probe last succeeded.
        catalogue: the tools that its runner published at the last successful probe
            (`runners.targets.published_tools`).
        catalogue_at, catalogue_error: when the tools were read, and why the last probe could not
            read them.
    """

    id = models.CharField(primary_key=True, max_length=64, default=new_target_id, editable=False)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64, null=True)
    kind = models.CharField(max_length=16, choices=TargetKind.choices)
    name = models.CharField(max_length=128)
    endpoint = models.CharField(max_length=500, null=True)
    opened_address = models.CharField(max_length=64, default="", db_default="", blank=True)
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


def new_client_id() -> str:
    """Return a new id of a paired browser."""
    return new_id("plc_")


class PluginClient(models.Model):
    """A paired browser: a browser profile of a person, in which tasks of its principal may act.

    Attributes:
        principal_id: whose browser it is: only that caller's tasks use it.
        principal: the principal of the ticket that paired it, as
            `decisions.identity.principals.principal_data`.
        name: what people call it; by default the browser and its system.
        secret_digest: of the secret with which it reconnects; it changes with each connection.
        previous_digest: of the secret before that, valid until the newest one is known to have
            arrived; then None.
        generation: how many secrets it has had.
        connection_id: of its open connection; None: not connected. A connection whose web process
            was killed keeps it, so `last_seen_at` counts too.
        last_used_at: when an action was last sent to it.
        timeouts: how many actions in a row it has not acknowledged or finished in time.
        paired_by: who created the ticket: `admin:<username>`, `command:<user>` or the principal.
    """

    id = models.CharField(primary_key=True, max_length=64, default=new_client_id, editable=False)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    principal_id = models.CharField(max_length=80)
    principal = models.JSONField()
    name = models.CharField(max_length=128)
    extension_id = models.CharField(max_length=64)
    extension_name = models.CharField(max_length=128)
    extension_version = models.CharField(max_length=32)
    user_agent = models.CharField(max_length=512)
    language = models.CharField(max_length=35, default="")
    secret_digest = models.CharField(max_length=64)
    previous_digest = models.CharField(max_length=64, null=True)
    generation = models.IntegerField(default=1)
    connection_id = models.CharField(max_length=64, null=True)
    connected_at = models.DateTimeField(null=True)
    last_seen_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True)
    timeouts = models.IntegerField(default=0)
    paired_by = models.CharField(max_length=160, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "paired browser"
        constraints = [
            models.CheckConstraint(
                condition=Q(revoked_at__isnull=True) | Q(connection_id__isnull=True),
                name="plugin_client_revoked_is_closed",
            )
        ]
        indexes = [
            models.Index(
                fields=["workspace_id", "principal_id", "-last_seen_at"],
                name="plugin_client_newest",
            )
        ]

    def __str__(self) -> str:
        return self.name


class PluginTicket(models.Model):
    """A single-use credential that pairs a browser; only its keyed digest is stored.

    Attributes:
        principal: as `PluginClient.principal`.
        name: the name that the browser gets; empty: the browser and its system.
        created_by: as `PluginClient.paired_by`.
    """

    digest = models.CharField(primary_key=True, max_length=64)
    principal = models.JSONField()
    name = models.CharField(max_length=128, default="")
    created_by = models.CharField(max_length=160, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta:
        verbose_name = "pairing ticket"
        indexes = [models.Index(fields=["expires_at"], name="plugin_ticket_to_delete")]

    def __str__(self) -> str:
        return f"expires {self.expires_at:%Y-%m-%d %H:%M}"
