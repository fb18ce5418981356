"""What was said: conversations, the events of a user's past, answers kept for repeated calls."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from decisions.models.decision import Decision


class Conversation(models.Model):
    """A session of messages of one user. Texts in it went through `redact`.

    Attributes:
        request: the message that waits for slots; empty where none does.
        answers: what was said to the questions about it.
        slots: what is known of it, by the slots' names.
        asked: the slots that were asked for last.
        last_message: what "do it" is about.
        risk: what is risky in what was asked for last of that kind, until a person confirmed it:
            {rule, clause, decision_id}, the last null where it was not decided yet.
        hints_off: the user understood, or does not want them: no more hints.
    """

    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    user_id = models.CharField(max_length=128)
    session_id = models.CharField(max_length=64)
    request = models.TextField(default="", blank=True)
    answers = models.JSONField(default=list)
    slots = models.JSONField(default=dict)
    asked = models.JSONField(default=list)
    last_message = models.TextField(default="", blank=True)
    risk = models.JSONField(default=dict)
    hints_off = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id", "user_id", "session_id"], name="conversation_per_user"
            )
        ]
        indexes = [models.Index(fields=["updated_at"], name="conversation_age")]

    def __str__(self) -> str:
        return self.session_id


class Event(models.Model):
    """One message that was decided on, as the past that later ones are compared with.

    Attributes:
        id: `entry_id` on every surface.
        signature: 64 bytes of `decisions.chat.history.similarity`.
        impact: Δ by axis, -1..1, as it was expected.
        cost: 0..10.
        layer: of memory, L1..L4.
    """

    id = models.BigAutoField(primary_key=True)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    user_id = models.CharField(max_length=128)
    decision = models.OneToOneField(Decision, on_delete=models.PROTECT, related_name="event")
    text = models.TextField()
    task_type = models.CharField(max_length=32)
    signature = models.BinaryField(max_length=64)
    impact = models.JSONField()
    confidence = models.FloatField()
    irreversible = models.BooleanField()
    system_caused = models.BooleanField()
    cost = models.FloatField()
    layer = models.CharField(max_length=2)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(layer__in=["L1", "L2", "L3", "L4"]), name="event_layer_known"
            )
        ]
        indexes = [models.Index(fields=["workspace_id", "user_id", "-id"], name="event_of_user")]

    def __str__(self) -> str:
        return str(self.pk)


class ChatAnswer(models.Model):
    """What a call was answered, for 24 hours; never a confirm token.

    Attributes:
        call_digest: keyed, of the whole body.
        worded: False while a responder of the installation's own words the answer.
    """

    workspace_id = models.CharField(max_length=64)
    user_id = models.CharField(max_length=128)
    idempotency_key = models.CharField(max_length=255)
    call_digest = models.CharField(max_length=64, editable=False)
    answer = models.JSONField(default=dict)
    worded = models.BooleanField(default=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id", "user_id", "idempotency_key"], name="chat_key_per_user"
            )
        ]
        indexes = [models.Index(fields=["created_at"], name="chat_answer_age")]

    def __str__(self) -> str:
        return self.idempotency_key
