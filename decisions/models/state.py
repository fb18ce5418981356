"""What a user has to spend, axis by axis, and why each value is what it is."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Axis(models.TextChoices):
    """What a decision can cost or give (S2; continuity.md, "The protocol")."""

    MONEY = "money"
    TIME = "time"
    ENERGY = "energy"
    ASSET = "asset"
    RELIABILITY = "reliability"
    IDENTITY = "identity"


class AxisValue(models.Model):
    """One axis of one user; `decisions.continuity.state` alone writes it, with a row of
    evidence.
    """

    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    user_id = models.CharField(max_length=128)
    axis = models.CharField(max_length=16, choices=Axis.choices)
    value = models.FloatField()
    confidence = models.FloatField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id", "user_id", "axis"], name="axis_once_per_user"
            ),
            models.CheckConstraint(condition=Q(axis__in=Axis.values), name="axis_known"),
            models.CheckConstraint(
                condition=Q(value__gte=0, value__lte=1, confidence__gte=0, confidence__lte=1),
                name="axis_within_0_and_1",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.axis}"


class Evidence(models.Model):
    """Why an axis moved: from which value to which, on whose word.

    Attributes:
        source: what told it: `chat`, `outcome`, or `streak` (five clean successes).
        delta: the change that was told, -1..1, before it was damped.
        decision_id: of the decision that it came with; not a foreign key, so that evidence stays.
    """

    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    user_id = models.CharField(max_length=128)
    axis = models.CharField(max_length=16, choices=Axis.choices)
    source = models.CharField(max_length=16)
    decision_id = models.BigIntegerField(null=True, db_index=True)
    delta = models.FloatField()
    confidence = models.FloatField()
    value_before = models.FloatField()
    value_after = models.FloatField()
    note = models.CharField(max_length=500, default="", blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "evidence"
        indexes = [
            models.Index(fields=["workspace_id", "user_id", "axis", "-id"], name="evidence_of_axis")
        ]

    def __str__(self) -> str:
        return f"{self.axis} {self.delta:+.2f}"
