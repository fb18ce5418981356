"""Chat: conversations, past events of users, responses stored for repeated calls."""

from __future__ import annotations

import json

from django.db import models
from django.db.models import Q

from decisions.models.decision import Decision

MESSAGE_BYTES = 64 * 1024  # the most bytes that a message has in UTF-8


class Conversation(models.Model):
    """A chat session of one user. Its texts are masked, except those that are encrypted.

    Attributes:
        request: the message that waits for missing slots; empty if none does.
        answers: the messages that answered questions about the request.
        slots: slot name -> value known so far.
        asked: the slots of the last questions.
        sealed_request: request, answers and slots as they were sent, encrypted.
        sealed_context: the last message and the clause of the risk as they were sent, with their
            masked forms, encrypted.
        last_message: the message that a later "do it" refers to.
        risk: the last risky request that no person has confirmed: {rule, clause, decision_id};
            decision_id is null before the decision.
        hints_off: the user asked for no more hints.
    """

    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    user_id = models.CharField(max_length=128)
    session_id = models.CharField(max_length=64)
    request = models.TextField(default="", blank=True)
    answers = models.JSONField(default=list)
    slots = models.JSONField(default=dict)
    asked = models.JSONField(default=list)
    sealed_request = models.BinaryField(null=True)
    sealed_context = models.BinaryField(null=True)
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

    @property
    def sealed_identity(self) -> str:
        """What the encrypted columns are bound to; a new conversation has no id yet."""
        return json.dumps([self.workspace_id, self.user_id, self.session_id])


class Event(models.Model):
    """A message that was decided on; later messages are compared with it.

    Attributes:
        id: `entry_id` in the APIs.
        signature: 64 bytes by `decisions.chat.history.similarity`.
        impact: axis -> expected change, -1..1.
        cost: 0..10.
        layer: the memory layer, L1..L4.
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
    """The stored response of a call, for 24 hours, without the confirm token.

    Attributes:
        call_digest: keyed digest of the whole body.
        worded: False while a custom responder has not written the reply text yet.
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
