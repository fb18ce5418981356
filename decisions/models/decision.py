"""What was decided, and what a person has to say to it first."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from decisions.infra.ids import new_id


def new_confirmation_id() -> str:
    """Return a fresh confirmation id."""
    return new_id("cnf_")


class DecisionKind(models.TextChoices):
    """What a decision is about: words (chat), or a deed (a tool called directly, a run's step)."""

    CHAT = "chat"
    TOOL = "tool"
    STEP = "step"


class DecisionMode(models.TextChoices):
    """What was decided."""

    ACT = "act"
    CLARIFY = "clarify"
    CONFIRM = "confirm"


class Decision(models.Model):
    """One decision; its id is a number on every surface (S2 §4). Written once; what a person says
    to it stands in its Confirmation.

    Attributes:
        user_id: whom it is about; None for a deed of a credential that acts for nobody in
            particular.
        parts: what the score was made of.
        rule: the rule that decided: of the gate (chat), or of policy (a deed).
        subject_digest: what a confirmation is bound to: of a deed tool, target and canonical
            arguments, of words what `decisions.chat` says; 64 hex digits.
        arguments: those of a deed, or what was said; secrets masked, as people are shown them.
        deed_key: of a deed, which call this is; a second decision on it cannot be opened while it
            stands.
    """

    id = models.BigAutoField(primary_key=True)
    # Ids of rows above or beside are plain strings (mechanisms 15).
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    principal_id = models.CharField(max_length=160)
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
    run_id = models.CharField(max_length=64, null=True, db_index=True)
    step_index = models.IntegerField(null=True)
    deed_key = models.CharField(max_length=64, null=True, unique=True)
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


class ConfirmationStatus(models.TextChoices):
    """What a person said, that nobody did in time, or that nobody needs to know any more."""

    WAITING = "waiting"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class Delivery(models.TextChoices):
    """How a person is reached: with a token through the agent's host (words only), or past it."""

    INLINE = "inline"
    OUT_OF_BAND = "out_of_band"


class Confirmation(models.Model):
    """What a decision waits for. `decisions.authorization.confirmations` is the sole writer; its
    status leaves
    `waiting` once.

    Attributes:
        token_digest: keyed; None where no token was made, or it was burned.
        decided_by: the principal or person; empty where time decided.
        decided_how: `token`, `admin`, `link`, `command`, `api`; `time`; `canceled`.
        used_at: when the deed that was confirmed began; it is done once.
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
