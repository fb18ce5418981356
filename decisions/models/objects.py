"""Objects of a user: one Shell, and success paths by name. All versions are kept."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from decisions.foundation.infra.ids import new_id


def new_object_id() -> str:
    """Return a fresh object id."""
    return new_id("obj_")


class ObjectType(models.TextChoices):
    """The two object types of S2."""

    SHELL = "shell"
    SUCCESS_PATH = "success_path"


class UserObject(models.Model):
    """The identity of an object; its content is in its versions."""

    id = models.CharField(primary_key=True, max_length=64, default=new_object_id, editable=False)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    user_id = models.CharField(max_length=128)
    object_type = models.CharField(max_length=16, choices=ObjectType.choices)
    name = models.CharField(max_length=128)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        verbose_name = "object"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id", "user_id", "object_type", "name"],
                name="object_name_per_user",
            ),
            models.CheckConstraint(
                condition=Q(object_type__in=ObjectType.values), name="object_type_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["workspace_id", "user_id", "-updated_at"], name="object_of_user_newest"
            )
        ]

    def __str__(self) -> str:
        return self.name


class ObjectVersion(models.Model):
    """One version of an object; only `is_current` changes later.

    Attributes:
        version: 1, 2, 3, …; the ETag and If-Match value.
        call_digest: of the call that wrote it, to tell a repeated call from a reused key.
    """

    object = models.ForeignKey(UserObject, on_delete=models.CASCADE, related_name="versions")
    version = models.IntegerField()
    is_current = models.BooleanField()
    payload = models.JSONField()
    confidence = models.CharField(max_length=8)
    validity = models.CharField(max_length=8)
    written_by = models.CharField(max_length=160)
    idempotency_key = models.CharField(max_length=255, null=True, editable=False)
    call_digest = models.CharField(max_length=64, editable=False)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["object", "version"], name="object_version_once"),
            models.UniqueConstraint(
                fields=["object"], condition=Q(is_current=True), name="object_one_current"
            ),
            models.CheckConstraint(
                condition=Q(confidence__in=["high", "medium", "low"])
                & Q(validity__in=["long", "medium", "short"]),
                name="object_levels_known",
            ),
        ]
        indexes = [
            models.Index(
                fields=["idempotency_key"],
                name="object_key",
                condition=Q(idempotency_key__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"version {self.version}"
