"""Outcomes of chat decisions."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from decisions.models.decision import Decision


class OutcomeStatus(models.TextChoices):
    """The three outcome statuses of S2."""

    SUCCESS = "success"
    FAILED = "failed"
    PARTIAL = "partial"


class Outcome(models.Model):
    """The outcome of one decision: created with it, pending until it is reported once.

    Attributes:
        id: a number; `outcome_id` in the APIs.
        status: None while pending.
        forecast: what was expected: impact by axis, its confidence, cost, memory layer.
        impact_error: mean absolute difference over the axes, 0..2; None without an actual impact.
        cost_error: actual minus expected cost; None without an actual cost or impact.
        report_digest: of the whole report, to tell a repeated report from a different one.
        proposal: the suggested success path, as input of `continuity_put_success_path`.
    """

    id = models.BigAutoField(primary_key=True)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    user_id = models.CharField(max_length=128)
    decision = models.OneToOneField(Decision, on_delete=models.PROTECT, related_name="outcome")
    opened_at = models.DateTimeField()
    forecast = models.JSONField(default=dict)
    layer = models.CharField(max_length=2, default="", blank=True)

    status = models.CharField(max_length=8, choices=OutcomeStatus.choices, null=True)
    note = models.CharField(max_length=4000, default="", blank=True)
    system_caused = models.BooleanField(default=False)
    failure_type = models.CharField(max_length=32, null=True)
    actual_impact = models.JSONField(null=True)
    actual_cost = models.FloatField(null=True)
    impact_error = models.FloatField(null=True)
    cost_error = models.FloatField(null=True)
    proposal = models.JSONField(null=True)
    report_digest = models.CharField(max_length=64, default="", editable=False)
    reported_by = models.CharField(max_length=160, default="", blank=True)
    reported_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(status__isnull=True) | Q(status__in=OutcomeStatus.values),
                name="outcome_status_known",
            ),
            models.CheckConstraint(
                condition=Q(status__isnull=True, reported_at__isnull=True)
                | Q(status__isnull=False, reported_at__isnull=False),
                name="outcome_reported_iff_it_has_a_status",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace_id", "user_id", "-reported_at"], name="outcome_of_user")
        ]

    def __str__(self) -> str:
        return str(self.pk)
