"""Webhooks and their deliveries."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import models
from django.db.models import Q


class Webhook(models.Model):
    """A URL of a workspace that receives a message when a run ends.

    Attributes:
        trust: the trust level of its creator; `remote` reaches public addresses only.
        every_run: it receives the end of every run; otherwise of those whose options name it.
        tells_confirmations: it also receives confirmations that wait for a person, with a link that
            decides them.
        tells_questions: it also receives the questions of runs that wait for an answer.
        sends_arguments: these have the exact arguments of the call; else digest and size alone.
        failing_since: the first failed attempt after the last one that succeeded.
        users: of a creator that is limited to users: these, as `as_list` writes them. It receives
            what its creator could read.
        secret: the key that signs its messages, encrypted; shown once, at its creation.
    """

    id = models.CharField(primary_key=True, max_length=64)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    name = models.CharField(max_length=128)
    url = models.CharField(max_length=2048)
    trust = models.CharField(max_length=8)
    every_run = models.BooleanField(default=True)
    tells_confirmations = models.BooleanField(default=False, db_default=False)
    tells_questions = models.BooleanField(default=False, db_default=False)
    sends_arguments = models.BooleanField(default=False, db_default=False)
    secret = models.BinaryField()
    created_by = models.CharField(max_length=160)
    users = models.TextField(null=True)
    created_at = models.DateTimeField()
    failing_since = models.DateTimeField(null=True)
    disabled_at = models.DateTimeField(null=True)
    disabled_because = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        indexes = [models.Index(fields=["workspace_id", "-created_at"], name="webhook_newest")]

    def __str__(self) -> str:
        return self.id


class DeliveryStatus(models.TextChoices):
    """The statuses of a delivery."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


# `next_try_at` of a delivery that is being sent: never due.
BEING_SENT = datetime(9999, 1, 1, tzinfo=UTC)


class WebhookDelivery(models.Model):
    """One message to one webhook, inserted in the transaction of its event: a run ended or asks a
    question, or a decision waits for a person.

    Attributes:
        id: the message's `webhook-id`, made of the ids of the run or confirmation and the webhook:
            one message for each pair, and one for each question of a run.
        event_seq: of a question: the run's event that has it.
        next_try_at: when it is due; BEING_SENT while a deliverer sends it.
        epoch: rises with every claim and every replay; what a deliverer writes tests it.
    """

    id = models.CharField(primary_key=True, max_length=64)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    run = models.ForeignKey(
        "runs.Run", null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    decision_id = models.BigIntegerField(null=True)
    event_seq = models.IntegerField(null=True)
    event = models.CharField(max_length=32)
    status = models.CharField(
        max_length=16, choices=DeliveryStatus.choices, default=DeliveryStatus.PENDING
    )
    attempts = models.IntegerField(default=0)
    epoch = models.IntegerField(default=0)
    next_try_at = models.DateTimeField()
    created_at = models.DateTimeField()
    tried_at = models.DateTimeField(null=True)
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


def delivery_id(subject_id: str, webhook_id: str) -> str:
    """Return the id of the message to a webhook about a run or a confirmation (`subject_id`)."""
    return f"msg_{subject_id.partition('_')[2]}_{webhook_id.partition('_')[2]}"
