"""Confirmations by a person: opened, then confirmed, refused, expired or withdrawn.

A confirm token has 256 random bits. The database stores a keyed digest of it, bound to the
decision, its user and the digest of what is confirmed. A confirmation ends once: each end is one
UPDATE that finds it waiting, or changes nothing. Every attempt is audited.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.genuine_answers import Answer, answer_mac, is_confirmed
from decisions.authorization.sealed_arguments import (
    CannotBeShown,
    change_since_request,
    is_shown_digest,
)
from decisions.foundation.errors import (
    Conflict,
    DecisionNotFound,
    DecisionOutdated,
    Forbidden,
    NotAsShown,
)
from decisions.foundation.security.keys import mac
from decisions.identity.authority import is_own_request
from decisions.models import Confirmation, ConfirmationStatus, Decision, DecisionKind, Delivery
from decisions.signals import call_information, confirmation_opened, decision_resolved

BATCH_SIZE = 200  # confirmations per call of `expire_due`
RENEW = "renew"
MAY_DECIDE = "decisions.change_confirmation"  # the permission of operators who decide
ANSWERS = ("confirm", "refuse", RENEW)  # what a person answers (`decide`)
DIGEST_PURPOSE = "confirm"  # key-derivation purpose of the token digests


@dataclass(frozen=True, slots=True)
class OpenedConfirmation:
    """A new confirmation with its token in clear, which is not stored.

    Attributes:
        clear_token: None for tool calls and for messages delivered out of band: they have none.
    """

    confirmation: Confirmation
    clear_token: str | None


def open_confirmation(
    decision: Decision, *, delivery: str | None = None, args_digest: str = ""
) -> OpenedConfirmation:
    """Open the confirmation of a saved decision, in the caller's transaction; audited.

    Args:
        decision: the decision to confirm.
        delivery: `inline` or `out_of_band`, by default CONFIRM_DELIVERY. Tool calls are always out
            of band: an agent must not be able to confirm its own calls.
        args_digest: the digest of a tool call in its other audit rows (`ToolCallRequest.digest`).
    """
    now = datetime.now(UTC)
    is_tool_call = decision.kind != DecisionKind.CHAT
    delivery = Delivery.OUT_OF_BAND if is_tool_call else delivery or settings.CONFIRM_DELIVERY
    token = secrets.token_urlsafe(32) if delivery == Delivery.INLINE else None
    confirmation = Confirmation.objects.create(
        decision=decision,
        delivery=delivery,
        token_digest=None if token is None else mac(DIGEST_PURPOSE, token_message(decision, token)),
        created_at=now,
        expires_at=now + timedelta(seconds=settings.CONFIRM_TTL_S),
    )
    details = {"delivery": delivery} | ({"argsDigest": args_digest} if args_digest else {})
    if decision.run_id and decision.call_key:
        details["callKey"] = decision.call_key
    _record(confirmation, "confirmation.opened", decision.principal_id, **details)
    confirmation_opened.send(sender=Confirmation, confirmation=confirmation)
    return OpenedConfirmation(confirmation, token)


def confirm(*, decision_id: int, by: str, how: str, shown: str | None = None) -> Confirmation:
    """Confirm a decision; audited. Commits.

    Args:
        by: the principal or user who confirms; the caller checked that they may.
        how: `admin`, `link`, `command` or `api`.
        shown: the digest of what this person saw (`decision_pages`). None is allowed for `api`
            alone (S2): who decides on a page or by command has seen the call.

    Raises:
        DecisionNotFound: No such decision, or it needs no confirmation.
        Conflict: It was decided before, or expired; details.status says which. Or the call cannot
            be shown whole.
        NotAsShown: `shown` is missing, or not the digest of this decision.
        DecisionOutdated: What the call works on has changed since it was requested.
        Forbidden: A credential tries to confirm its own request.
    """
    return _decide(decision_id, ConfirmationStatus.CONFIRMED, by=by, how=how, shown=shown)


def refuse(*, decision_id: int, by: str, how: str, shown: str | None = None) -> Confirmation:
    """Refuse a decision; audited. Commits. Arguments as `confirm`, but a call can be refused
    without having been shown whole: `shown` is compared where it is given, unless the
    call is outdated.

    Raises:
        DecisionNotFound, Conflict, NotAsShown, Forbidden: As `confirm`.
    """
    return _decide(decision_id, ConfirmationStatus.REFUSED, by=by, how=how, shown=shown)


def decide(
    *, answer: str, decision_id: int, by: str, how: str, shown: str | None = None
) -> Confirmation:
    """Confirm or refuse a decision, or have it requested anew, by the name of the answer (ANSWERS).
    Arguments and errors as those functions.
    """
    if answer == RENEW:
        return request_anew(decision_id=decision_id, by=by, how=how)
    respond = {"confirm": confirm, "refuse": refuse}[answer]
    return respond(decision_id=decision_id, by=by, how=how, shown=shown)


def request_anew(*, decision_id: int, by: str, how: str) -> Confirmation:
    """Withdraw a waiting decision that cannot be confirmed any more, and requeue its run: the run
    then requests a confirmation of the call with the present state. Audited. Commits.

    Raises:
        DecisionNotFound: No such decision, or it needs no confirmation.
        Conflict: It can be confirmed, was decided before, or no run waits for it.
    """
    confirmation = _confirmation(decision_id)
    decision = confirmation.decision
    if decision.run_id is None:
        raise Conflict(
            f"Decision {decision_id} is needed by no run. When its caller repeats the call, the"
            " call requests a new confirmation."
        )
    if _is_confirmable(decision):
        raise Conflict(
            f"What decision {decision_id} is about has not changed; confirm or refuse it."
        )
    with transaction.atomic():
        if not _withdraw(confirmation, by=by, how=how):
            raise _decided_already(confirmation)
        Decision.objects.filter(pk=decision_id).update(call_key=None)
        decision_resolved.send(sender=Confirmation, confirmation=confirmation)
    return confirmation


def _is_confirmable(decision: Decision) -> bool:
    try:
        return not change_since_request(decision, call_information().basis_of(decision))
    except CannotBeShown:
        return False


def supersede(decision_id: int, *, by: str) -> None:
    """Detach a decision from its call, which requests a new one, and withdraw its confirmation if
    it waits; audited. In the caller's transaction.
    """
    Decision.objects.filter(pk=decision_id).update(call_key=None)
    found = Confirmation.objects.select_related("decision").filter(decision_id=decision_id).first()
    if found is not None:
        _withdraw(found, by=by, how="superseded")


def _confirmation(decision_id: int) -> Confirmation:
    found = Confirmation.objects.select_related("decision").filter(decision_id=decision_id).first()
    if found is None:
        raise DecisionNotFound(f"No decision {decision_id} needs a confirmation.")
    return found


def _decided_already(confirmation: Confirmation) -> Conflict:
    return Conflict(
        f"Decision {confirmation.decision_id} is {confirmation.status} already.",
        details={"status": confirmation.status},
    )


def _decide(
    decision_id: int, status: ConfirmationStatus, *, by: str, how: str, shown: str | None
) -> Confirmation:
    confirmation = _confirmation(decision_id)
    own = is_own_request(confirmation.decision, by=by, how=how)
    unseen = _unseen(confirmation, status, how=how, shown=shown)
    with transaction.atomic():
        if not own and unseen is None and resolve(confirmation, status, by=by, how=how):
            return confirmation
        reason = "own" if own else _reason(unseen) or confirmation.status
        _record(confirmation, "confirmation.tried", by, how=how, wanted=str(status), failed=reason)
    if own:
        raise Forbidden("A credential cannot confirm its own request.")
    if unseen is not None:
        raise unseen
    raise _decided_already(confirmation)


def _reason(unseen: Conflict | None) -> str:
    """Return why an attempt failed, for its audit event; empty: not because of what was shown."""
    if isinstance(unseen, DecisionOutdated):
        return "changed"
    return "" if unseen is None else "digest"


def _unseen(
    confirmation: Confirmation, status: ConfirmationStatus, *, how: str, shown: str | None
) -> Conflict | None:
    """Return why an answer is not one to what the decision is about; None if it is."""
    has_ended = confirmation.expires_at <= datetime.now(UTC)
    if confirmation.status != ConfirmationStatus.WAITING or has_ended:
        return None
    decision, confirms = confirmation.decision, status == ConfirmationStatus.CONFIRMED
    if shown is None and not confirms:
        return None
    try:
        if change := change_since_request(decision, call_information().basis_of(decision)):
            return DecisionOutdated(decision.pk, change) if confirms else None
        if is_shown_digest(decision, shown or ""):
            return None
    except CannotBeShown as hidden:
        return Conflict(f"Decision {decision.pk} cannot be shown whole. {hidden.reason}")
    return None if shown is None and how == "api" else NotAsShown(decision.pk)


def resolve(confirmation: Confirmation, status: ConfirmationStatus, *, by: str, how: str) -> bool:
    """Confirm or refuse a waiting confirmation, in the caller's transaction; audited.

    Returns False, with the instance refreshed, if it was decided before or has expired.
    """
    now = datetime.now(UTC)
    answer = Answer(status, now, by, how)
    columns = {**asdict(answer), "answer_mac": answer_mac(confirmation, answer)}
    if not _end(confirmation, columns, expires_at__gt=now):
        if confirmation.status == ConfirmationStatus.WAITING:
            _expire(confirmation, now)
        return False
    _record(confirmation, f"confirmation.{status}", by, how=how, hasMac=True)
    decision_resolved.send(sender=Confirmation, confirmation=confirmation)
    return True


def _end(confirmation: Confirmation, columns: Mapping[str, Any], **conditions: Any) -> bool:
    """Set the columns of a confirmation that waits and meets the conditions; False, with the
    instance refreshed, if there is none.
    """
    waiting = Confirmation.objects.filter(
        pk=confirmation.pk, status=ConfirmationStatus.WAITING, **conditions
    )
    if not waiting.update(**columns):
        confirmation.refresh_from_db(fields=[*columns, "expires_at"])
        return False
    for name, value in columns.items():
        setattr(confirmation, name, value)
    return True


def expire_due(now: datetime | None = None) -> int:
    """Expire overdue confirmations; return how many. Commits each. Safe to call concurrently."""
    now, count = now or datetime.now(UTC), 0
    due = Confirmation.objects.select_related("decision").filter(
        status=ConfirmationStatus.WAITING, expires_at__lte=now
    )
    for confirmation in due.order_by("expires_at")[:BATCH_SIZE]:
        with transaction.atomic():
            count += _expire(confirmation, now)
    return count


def _expire(confirmation: Confirmation, now: datetime) -> bool:
    columns = {
        "status": ConfirmationStatus.EXPIRED,
        "decided_at": now,
        "decided_how": "time",
    }
    if not _end(confirmation, columns, expires_at__lte=now):
        return False
    _record(confirmation, "confirmation.expired", "scheduler")
    decision_resolved.send(sender=Confirmation, confirmation=confirmation)
    return True


def expire_if_due(confirmation: Confirmation) -> None:
    """Expire this confirmation if it is overdue, and update the instance. Commits."""
    now = datetime.now(UTC)
    if confirmation.status == ConfirmationStatus.WAITING and confirmation.expires_at <= now:
        with transaction.atomic():
            _expire(confirmation, now)


def withdraw(*, run_id: str, by: str) -> None:
    """Withdraw a canceled run's waiting confirmations, in the caller's transaction; audited."""
    waiting = Confirmation.objects.select_related("decision").filter(
        decision__run_id=run_id, status=ConfirmationStatus.WAITING
    )
    for confirmation in waiting:
        _withdraw(confirmation, by=by, how="canceled")


def _withdraw(confirmation: Confirmation, *, by: str, how: str) -> bool:
    """Withdraw a confirmation if it waits, in the caller's transaction; audited. Return whether it
    waited.
    """
    columns = {
        "status": ConfirmationStatus.WITHDRAWN,
        "decided_at": datetime.now(UTC),
        "decided_by": by,
        "decided_how": how,
    }
    if not _end(confirmation, columns):
        return False
    _record(confirmation, "confirmation.withdrawn", by, how=how)
    return True


def mark_used(confirmation: Confirmation) -> bool:
    """Mark a confirmation as used, in the caller's transaction.

    Returns False if it was used before, or is not confirmed.
    """
    unused = Confirmation.objects.filter(
        pk=confirmation.pk, status=ConfirmationStatus.CONFIRMED, used_at__isnull=True
    )
    return bool(unused.update(used_at=datetime.now(UTC)))


def expire_unused_approvals() -> int:
    """Expire every approval of a tool call that was not used, and return how many.

    For a restored database: the approved call may have been made after the backup.
    """
    unused = Confirmation.objects.filter(
        status=ConfirmationStatus.CONFIRMED, used_at__isnull=True
    ).exclude(decision__kind=DecisionKind.CHAT)
    return unused.update(status=ConfirmationStatus.EXPIRED, decided_how="restore")


def token_message(decision: Decision, token: str) -> bytes:
    """Return the bytes whose digest is stored: the token with what it confirms."""
    return json.dumps([decision.pk, decision.user_id, decision.subject_digest, token]).encode()


def record_forged(confirmation: Confirmation, actor: str) -> None:
    """Record that a confirmation is confirmed by its status alone, in the caller's transaction."""
    stored = {"status": confirmation.status, "decidedBy": confirmation.decided_by}
    _record(confirmation, "confirmation.not_genuine", actor, **stored)


def _record(confirmation: Confirmation, action: str, actor: str, **details: Any) -> None:
    decision = confirmation.decision
    details = {"confirmationId": confirmation.id, "kind": decision.kind, **details}
    if decision.kind != DecisionKind.CHAT:
        details |= {"tool": decision.tool, "subjectDigest": decision.subject_digest}
    if decision.run_id:
        details["runId"] = decision.run_id
    record(
        AuditEvent(
            action,
            actor,
            "decision",
            str(decision.pk),
            decision.tenant_id,
            decision.workspace_id,
            details,
        )
    )


def was_approved(decision_id: int, *, digests: Collection[str], principal_id: str) -> bool:
    """Return whether a person confirmed exactly this direct call of this caller, and it was
    started. A confirmation by its status alone, without a genuine answer, does not count.

    Args:
        digests: the call's digest under each configured key.
    """
    used = Confirmation.objects.select_related("decision").filter(
        decision_id=decision_id,
        status=ConfirmationStatus.CONFIRMED,
        used_at__isnull=False,
        decision__kind=DecisionKind.TOOL,
        decision__subject_digest__in=digests,
        decision__principal_id=principal_id,
    )
    return any(is_confirmed(confirmation) for confirmation in used)
