"""A user's state: how much is left on each axis, and the evidence for each value."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext


class Axis(models.TextChoices):
    """The resources that a decision can use up or increase (S2)."""

    MONEY = "money"
    TIME = "time"
    ENERGY = "energy"
    ASSET = "asset"
    RELIABILITY = "reliability"
    IDENTITY = "identity"


class AxisValue(models.Model):
    """One axis of one user, written only by `decisions.memory.state`, with evidence."""

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
    """One change of an axis value, and its source.

    Attributes:
        source: `chat`, `outcome`, or `streak` (five clean successes).
        delta: the reported change, -1..1, before damping.
        decision_id: the decision that it came with; not a foreign key, so that evidence is kept.
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
        return f"{gettext(self.axis)} {self.delta:+.2f}"
