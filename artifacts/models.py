"""Artifacts and uploads; the bytes are in the storage under their SHA-256."""

from __future__ import annotations

from django.db import models

RESULT = "result"  # kind of the artifact with a run's whole result; listed first on its run


class Artifact(models.Model):
    """A file of a run's output, or an upload. After the bytes are deleted, the row remains as a
    tombstone (`expired_at`).

    Attributes:
        trust, principal_id, user_id: of the caller that it belongs to; None in rows of an older
            version whose run is not known any more.
    """

    id = models.CharField(primary_key=True, max_length=64)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    trust = models.CharField(max_length=8, null=True)
    principal_id = models.CharField(max_length=80, null=True)
    user_id = models.CharField(max_length=128, null=True)
    run_id = models.CharField(max_length=64)
    step_index = models.IntegerField(null=True)
    kind = models.CharField(max_length=32)
    name = models.CharField(max_length=255)
    mime_type = models.CharField(max_length=128)
    sha256 = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    created_at = models.DateTimeField()
    # Set when its run ends: after this time the bytes are deleted, not the row.
    expires_at = models.DateTimeField(null=True)
    expired_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["expires_at"],
                name="artifact_to_expire",
                condition=models.Q(expired_at__isnull=True, expires_at__isnull=False),
            ),
            models.Index(fields=["-created_at", "-id"], name="artifact_newest"),
            models.Index(
                fields=["workspace_id", "-created_at", "-id"], name="artifact_by_workspace"
            ),
            models.Index(fields=["run_id"], name="artifact_of_run"),
            models.Index(fields=["sha256"], name="artifact_of_bytes"),
        ]

    def __str__(self) -> str:
        return self.name


class ArtifactUpload(models.Model):
    """An announced upload. Its bytes become an artifact once they are verified; until then they are
    staged under the upload's id.

    Attributes:
        trust: of the caller that announced it; None, in a row of an older version, counts as local.
    """

    id = models.CharField(primary_key=True, max_length=64)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    principal_id = models.CharField(max_length=80)
    trust = models.CharField(max_length=8, null=True)
    name = models.CharField(max_length=255)
    mime_type = models.CharField(max_length=128)
    sha256 = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    artifact_id = models.CharField(max_length=64, null=True)

    class Meta:
        indexes = [
            models.Index(fields=["workspace_id", "expires_at"], name="upload_open"),
            models.Index(fields=["expires_at"], name="upload_to_forget"),
        ]

    def __str__(self) -> str:
        return self.name
