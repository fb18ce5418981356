"""What the hands keep: browser sessions that outlive a run."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone


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
