"""What a person has to say before something is done: opened, confirmed, refused, expired.

A token holds 256 random bits; the database keeps a digest under a key outside of it, bound to the
decision, its user and the digest of what is confirmed. Whatever is said, it is said once: every end
is one UPDATE that finds the confirmation waiting, or changes nothing. Each try leaves an audit row.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.errors import Conflict, DecisionNotFound, Forbidden
from decisions.models import Confirmation, ConfirmationStatus, Decision, DecisionKind, Delivery
from decisions.security.keys import mac
from decisions.signals import confirmation_opened, decision_resolved

BATCH_SIZE = 200  # confirmations that one transaction of the scheduler ends
TOKEN_PURPOSE = "confirm"  # what their digests are keyed for


@dataclass(frozen=True, slots=True)
class OpenedConfirmation:
    """A confirmation that waits, and its token in clear: known here and never again.

    Attributes:
        clear_token: None where no token is made: of deeds, and of words delivered out of band.
    """

    confirmation: Confirmation
    clear_token: str | None


def open_confirmation(decision: Decision, *, delivery: str | None = None) -> OpenedConfirmation:
    """Have a saved decision wait for a person, in the caller's transaction.

    Args:
        decision: what has to be confirmed.
        delivery: `inline` or `out_of_band`; by default what CONFIRM_DELIVERY says. Deeds are out of
            band whatever is asked for: an agent must not be able to confirm its own (mechanisms
            12).
    """
    now = datetime.now(UTC)
    is_deed = decision.kind != DecisionKind.CHAT
    delivery = Delivery.OUT_OF_BAND if is_deed else delivery or settings.CONFIRM_DELIVERY
    token = secrets.token_urlsafe(32) if delivery == Delivery.INLINE else None
    confirmation = Confirmation.objects.create(
        decision=decision,
        delivery=delivery,
        token_digest=None if token is None else mac(TOKEN_PURPOSE, token_message(decision, token)),
        created_at=now,
        expires_at=now + timedelta(seconds=settings.CONFIRM_TTL_S),
    )
    _record(confirmation, "confirmation.opened", decision.principal_id, delivery=delivery)
    confirmation_opened.send(sender=Confirmation, confirmation=confirmation)
    return OpenedConfirmation(confirmation, token)


def confirm(*, decision_id: int, by: str, how: str) -> Confirmation:
    """Confirm as a person who may (admin, signed link, command, a credential with the scope
    `confirm`). Commits.

    Raises:
        DecisionNotFound: No such decision waits or waited for anybody.
        Conflict: It was decided before, or its time is over; details.status says how.
        Forbidden: A credential that confirms what it asked for itself.
    """
    return _decide(decision_id, ConfirmationStatus.CONFIRMED, by=by, how=how)


def refuse(*, decision_id: int, by: str, how: str) -> Confirmation:
    """Refuse as a person who may. Commits.

    Raises:
        DecisionNotFound, Conflict, Forbidden: As `confirm`.
    """
    return _decide(decision_id, ConfirmationStatus.REFUSED, by=by, how=how)


def _decide(decision_id: int, status: ConfirmationStatus, *, by: str, how: str) -> Confirmation:
    confirmation = (
        Confirmation.objects.select_related("decision").filter(decision_id=decision_id).first()
    )
    if confirmation is None:
        raise DecisionNotFound(f"No decision {decision_id} waits for anybody.")
    own = by == confirmation.decision.principal_id and how == "api"
    with transaction.atomic():
        if not own and resolve(confirmation, status, by=by, how=how):
            return confirmation
        why = "own" if own else confirmation.status
        _record(confirmation, "confirmation.tried", by, how=how, wanted=str(status), failed=why)
    if own:
        raise Forbidden("A credential cannot confirm what it asked for itself.")
    raise Conflict(
        f"Decision {decision_id} is {confirmation.status} already.",
        details={"status": confirmation.status},
    )


def resolve(confirmation: Confirmation, status: ConfirmationStatus, *, by: str, how: str) -> bool:
    """End the waiting, in the caller's transaction, if it still is; else bring the row up to date
    and return False.
    """
    now = datetime.now(UTC)
    waiting = Confirmation.objects.filter(
        pk=confirmation.pk, status=ConfirmationStatus.WAITING, expires_at__gt=now
    )
    if not waiting.update(status=status, decided_at=now, decided_by=by, decided_how=how):
        confirmation.refresh_from_db(fields=["status", "expires_at", "decided_at", "decided_how"])
        if confirmation.status == ConfirmationStatus.WAITING:
            _expire(confirmation, now)
        return False
    confirmation.status, confirmation.decided_at = status, now
    confirmation.decided_by, confirmation.decided_how = by, how
    _record(confirmation, f"confirmation.{status}", by, how=how)
    decision_resolved.send(sender=Confirmation, confirmation=confirmation)
    return True


def expire_due(now: datetime | None = None) -> int:
    """End what nobody decided in time; return how many. Commits; any number of callers is safe."""
    now, ended = now or datetime.now(UTC), 0
    due = Confirmation.objects.select_related("decision").filter(
        status=ConfirmationStatus.WAITING, expires_at__lte=now
    )
    for confirmation in due.order_by("expires_at")[:BATCH_SIZE]:
        with transaction.atomic():
            ended += _expire(confirmation, now)
    return ended


def _expire(confirmation: Confirmation, now: datetime) -> bool:
    due = Confirmation.objects.filter(
        pk=confirmation.pk, status=ConfirmationStatus.WAITING, expires_at__lte=now
    )
    expired = ConfirmationStatus.EXPIRED
    if not due.update(status=expired, decided_at=now, decided_how="time"):
        return False
    confirmation.status, confirmation.decided_at, confirmation.decided_how = expired, now, "time"
    _record(confirmation, "confirmation.expired", "scheduler")
    decision_resolved.send(sender=Confirmation, confirmation=confirmation)
    return True


def expire_if_due(confirmation: Confirmation) -> None:
    """Bring a confirmation that was read up to date with the clock. Commits."""
    now = datetime.now(UTC)
    if confirmation.status == ConfirmationStatus.WAITING and confirmation.expires_at <= now:
        with transaction.atomic():
            if not _expire(confirmation, now):  # somebody was first
                confirmation.refresh_from_db(fields=["status", "decided_at", "decided_how"])


def withdraw(*, run_id: str, by: str) -> None:
    """End what a run waits for without an answer: it was canceled; in the caller's transaction."""
    waiting = Confirmation.objects.select_related("decision").filter(
        decision__run_id=run_id, status=ConfirmationStatus.WAITING
    )
    for confirmation in waiting:
        end = Confirmation.objects.filter(pk=confirmation.pk, status=ConfirmationStatus.WAITING)
        if end.update(
            status=ConfirmationStatus.WITHDRAWN,
            decided_at=datetime.now(UTC),
            decided_by=by,
            decided_how="canceled",
        ):
            _record(confirmation, "confirmation.withdrawn", by)


def mark_used(confirmation: Confirmation) -> bool:
    """Take a confirmed deed as begun, in the caller's transaction; False where it was before, or is
    not confirmed.
    """
    fresh = Confirmation.objects.filter(
        pk=confirmation.pk, status=ConfirmationStatus.CONFIRMED, used_at__isnull=True
    )
    return bool(fresh.update(used_at=datetime.now(UTC)))


def token_message(decision: Decision, token: str) -> bytes:
    """Return the bytes whose digest is kept: the token and all that it is good for."""
    return json.dumps([decision.pk, decision.user_id, decision.subject_digest, token]).encode()


def _record(confirmation: Confirmation, action: str, actor: str, **told: Any) -> None:
    decision = confirmation.decision
    told = {"confirmationId": confirmation.id, "kind": decision.kind, **told}
    if decision.kind != DecisionKind.CHAT:
        told |= {"tool": decision.tool, "argsDigest": decision.subject_digest}
    if decision.run_id:
        told["runId"] = decision.run_id
    record(
        AuditEvent(
            action,
            actor,
            "decision",
            str(decision.pk),
            decision.tenant_id,
            decision.workspace_id,
            told,
        )
    )


def was_approved(decision_id: int, *, digests: Collection[str], principal_id: str) -> bool:
    """Tell whether a person said yes to just this direct call of just this caller, and it began.

    `digests`: the call's, under each configured key: the newest may have come since.
    """
    return Confirmation.objects.filter(
        decision_id=decision_id,
        status=ConfirmationStatus.CONFIRMED,
        used_at__isnull=False,
        decision__kind=DecisionKind.TOOL,
        decision__subject_digest__in=digests,
        decision__principal_id=principal_id,
    ).exists()
