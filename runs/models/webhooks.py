"""The rows of webhooks: who is told of runs that ended, and what became of the telling."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import models
from django.db.models import Q


class Webhook(models.Model):
    """An address of a workspace that is told when a run ends: of every run, or of those that name
    it.

    Attributes:
        trust: the trust level of who made it; `remote` reaches public addresses only.
        tells_confirmations: it is also told what waits for a person, with a link that decides it.
        secret: what signs its messages, sealed; shown once, when it is made.
    """

    id = models.CharField(primary_key=True, max_length=64)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    name = models.CharField(max_length=128)
    url = models.CharField(max_length=2048)
    trust = models.CharField(max_length=8)
    every_run = models.BooleanField(default=True)
    tells_confirmations = models.BooleanField(default=False, db_default=False)
    secret = models.BinaryField()
    created_by = models.CharField(max_length=160)
    created_at = models.DateTimeField()
    disabled_at = models.DateTimeField(null=True)
    disabled_because = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        indexes = [models.Index(fields=["workspace_id", "-created_at"], name="webhook_newest")]

    def __str__(self) -> str:
        return self.id


class DeliveryStatus(models.TextChoices):
    """Where a delivery stands."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


BEING_SENT = datetime(9999, 1, 1, tzinfo=UTC)  # due never: somebody is trying


class WebhookDelivery(models.Model):
    """One message to one webhook, written in the transaction of what it tells: that a run ended, or
    that a decision waits for a person.

    Attributes:
        id: the message's `webhook-id`, made of the id of what it tells and the webhook's: one
            message a pair.
        next_try_at: when it is due; UNDER_WAY while somebody tries.
        epoch: grows with every claim and every replay; what a deliverer writes tests it.
    """

    id = models.CharField(primary_key=True, max_length=64)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    run = models.ForeignKey(
        "runs.Run", null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    decision_id = models.BigIntegerField(null=True)
    event = models.CharField(max_length=32)
    status = models.CharField(
        max_length=16, choices=DeliveryStatus.choices, default=DeliveryStatus.PENDING
    )
    attempts = models.IntegerField(default=0)
    epoch = models.IntegerField(default=0)
    next_try_at = models.DateTimeField()
    created_at = models.DateTimeField()
    tried_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    status_code = models.IntegerField(null=True)
    error = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=DeliveryStatus.values), name="delivery_status_known"
            ),
            models.CheckConstraint(
                condition=Q(run__isnull=False, decision_id__isnull=True)
                | Q(run__isnull=True, decision_id__isnull=False),
                name="delivery_tells_one_thing",
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_try_at"], name="delivery_due", condition=Q(status="pending")
            ),
            models.Index(fields=["webhook", "-created_at", "-id"], name="delivery_newest"),
            models.Index(fields=["-created_at", "-id"], name="delivery_newest_of_all"),
        ]

    def __str__(self) -> str:
        return self.id


def delivery_id(told_id: str, webhook_id: str) -> str:
    """Return the id of the one message that tells this webhook of this run, or confirmation."""
    return f"msg_{told_id.partition('_')[2]}_{webhook_id.partition('_')[2]}"
