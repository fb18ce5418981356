"""Decisions on chat messages and tool calls, and their confirmations by a person."""

from __future__ import annotations

import json
from datetime import UTC

from django.db import models
from django.db.models import Q

from decisions.foundation.infra.ids import new_id


def new_confirmation_id() -> str:
    """Return a fresh confirmation id."""
    return new_id("cnf_")


class DecisionKind(models.TextChoices):
    """The subject of a decision: a chat message, a direct tool call, or a call of a run's step."""

    CHAT = "chat"
    TOOL = "tool"
    STEP = "step"


class DecisionMode(models.TextChoices):
    """The outcome of a decision."""

    ACT = "act"
    CLARIFY = "clarify"
    CONFIRM = "confirm"


class Decision(models.Model):
    """One decision, written once; a person's answer is in its Confirmation. The id is a number in
    the APIs (S2 §4).

    Attributes:
        trust: of the caller that it belongs to; None in rows of an older version.
        user_id: the user that it is about; None for a tool call of a credential without one user.
        parts: the parts of the score.
        rule: the rule that decided: of the L4 gate (chat), or of policy (tool calls).
        subject_digest: what a confirmation is bound to, 64 hex digits: tool, target and canonical
            arguments of a tool call; request, answers and slots of a chat message.
        arguments: the tool's arguments, or the message, for lists and records: what looks like a
            secret is masked, and long values are cut.
        sealed_arguments: the exact arguments, encrypted (`authorization.sealed_arguments`); None
            where no person is asked.
        call_key: the identity of the tool call; unique, so that a call has one current decision.
    """

    id = models.BigAutoField(primary_key=True)
    # Ids of other rows are plain strings, so that no cascade deletes a decision.
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    principal_id = models.CharField(max_length=160)
    trust = models.CharField(max_length=8, null=True)
    user_id = models.CharField(max_length=128, null=True)
    session_id = models.CharField(max_length=64, null=True)
    kind = models.CharField(max_length=8, choices=DecisionKind.choices)
    mode = models.CharField(max_length=8, choices=DecisionMode.choices)
    task_type = models.CharField(max_length=32, default="", blank=True)
    score = models.FloatField(null=True)
    parts = models.JSONField(default=dict)
    rule = models.CharField(max_length=160, default="", blank=True)
    reason = models.CharField(max_length=500, default="", blank=True)
    subject_digest = models.CharField(max_length=64)
    tool = models.CharField(max_length=128, default="", blank=True)
    target_id = models.CharField(max_length=128, null=True)
    arguments = models.JSONField(default=dict)
    sealed_arguments = models.BinaryField(null=True)
    run_id = models.CharField(max_length=64, null=True, db_index=True)
    step_index = models.IntegerField(null=True)
    call_key = models.CharField(max_length=64, null=True, unique=True, db_column="deed_key")
    trace = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=DecisionKind.values), name="decision_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(mode__in=DecisionMode.values), name="decision_mode_known"
            ),
        ]
        indexes = [
            models.Index(fields=["workspace_id", "user_id", "-id"], name="decision_of_user"),
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @property
    def sealed_identity(self) -> str:
        """What `sealed_arguments` is bound to: the id is not known when they are sealed."""
        call = self.tenant_id, self.workspace_id, self.principal_id, self.kind, self.subject_digest
        at = self.created_at.astimezone(UTC).isoformat()
        return json.dumps([*call, self.run_id, self.step_index, at])


class ConfirmationStatus(models.TextChoices):
    """waiting, then once confirmed, refused, expired, or withdrawn (its run was canceled, or the
    call requests a new one).
    """

    WAITING = "waiting"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class Delivery(models.TextChoices):
    """How the person confirms: with a token in the agent's response (chat only), or out of band."""

    INLINE = "inline"
    OUT_OF_BAND = "out_of_band"


class Confirmation(models.Model):
    """A person's confirmation of a decision, written by `decisions.authorization.confirmations`
    alone. Its status leaves `waiting` once.

    Attributes:
        token_digest: keyed; None if there is no token, or it was revoked after wrong tries.
        decided_by: the principal or user; empty if it expired.
        decided_how: `token`, `admin`, `link`, `command`, `api`; `time`; `canceled`; `restore`;
            `superseded`: the call has changed and requested a new one.
        answer_mac: the MAC of a person's answer (`authorization.genuine_answers`).
        used_at: when the confirmed call was started, which is possible once.
    """

    id = models.CharField(
        primary_key=True, max_length=64, default=new_confirmation_id, editable=False
    )
    decision = models.OneToOneField(Decision, on_delete=models.PROTECT, related_name="confirmation")
    status = models.CharField(
        max_length=16, choices=ConfirmationStatus.choices, default=ConfirmationStatus.WAITING
    )
    delivery = models.CharField(max_length=16, choices=Delivery.choices)
    token_digest = models.CharField(max_length=64, null=True, editable=False)
    wrong_tries = models.IntegerField(default=0)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=160, default="", blank=True)
    decided_how = models.CharField(max_length=16, default="", blank=True)
    answer_mac = models.CharField(max_length=64, null=True, editable=False)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=ConfirmationStatus.values), name="confirmation_status_known"
            ),
            models.CheckConstraint(
                condition=Q(status="waiting", decided_at__isnull=True)
                | ~Q(status="waiting") & Q(decided_at__isnull=False),
                name="confirmation_decided_iff_not_waiting",
            ),
            models.CheckConstraint(
                condition=Q(delivery="inline")
                | Q(delivery="out_of_band", token_digest__isnull=True),
                name="confirmation_out_of_band_has_no_token",
            ),
            models.CheckConstraint(
                condition=Q(used_at__isnull=True) | Q(status="confirmed"),
                name="confirmation_used_only_if_confirmed",
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"], name="confirmation_waiting", condition=Q(status="waiting")
            ),
            models.Index(fields=["-created_at", "-id"], name="confirmation_newest"),
        ]

    def __str__(self) -> str:
        return self.id
