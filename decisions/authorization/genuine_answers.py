"""The MAC of a person's answer: who can write to the database, but has no key, cannot confirm.

It covers the confirmation, the call with its target as it was then, what was shown, the answer, who
gave it and when. A confirmation without it permits nothing; the person is asked again. During a
rolling upgrade, genuine audit rows stand for the MAC, which processes of the previous version do
not write.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings

from decisions.audit.record import is_genuine
from decisions.authorization.sealed_arguments import CannotBeShown, open_arguments, open_basis
from decisions.foundation.security.keys import mac, mac_matches
from decisions.models import AuditEntry, Confirmation, ConfirmationStatus, Decision

_PURPOSE = "decisions_confirmation.answer_mac"
_REQUESTED, _CONFIRMED = "confirmation.opened", "confirmation.confirmed"
_RECORDED_WITHIN = timedelta(minutes=1)  # after an answer, which may wait for a lock


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer, by the names of its columns in Confirmation."""

    status: str
    decided_at: datetime | None
    decided_by: str
    decided_how: str


def answer_mac(confirmation: Confirmation, answer: Answer) -> str:
    """Return the MAC of an answer to a confirmation."""
    return mac(_PURPOSE, _message(confirmation, answer))


def is_confirmed(confirmation: Confirmation) -> bool:
    """Return whether a person confirmed it, by its status and by the MAC of exactly this answer."""
    if confirmation.status != ConfirmationStatus.CONFIRMED:
        return False
    if confirmation.answer_mac is None and settings.ROLLING_UPGRADE:
        return _is_audited(confirmation)
    answer = Answer(
        confirmation.status,
        confirmation.decided_at,
        confirmation.decided_by,
        confirmation.decided_how,
    )
    return mac_matches(_PURPOSE, _message(confirmation, answer), confirmation.answer_mac or "")


def _is_audited(confirmation: Confirmation) -> bool:
    """Return whether genuine audit rows say that this caller requested this confirmation of this
    call, and that a person gave exactly this answer in an older version.
    """
    decision = confirmation.decision
    rows = AuditEntry.objects.filter(
        action__in=[_REQUESTED, _CONFIRMED],
        resource_type="decision",
        resource_id=str(decision.pk),
        tenant_id=decision.tenant_id,
        workspace_id=decision.workspace_id,
    )
    about = [row for row in rows if is_genuine(row) and _is_about(row.metadata, confirmation)]
    is_requested = any(_is_request(row, decision) for row in about)
    return is_requested and any(_is_answer(row, confirmation) for row in about)


def _is_about(details: Mapping[str, object], confirmation: Confirmation) -> bool:
    decision = confirmation.decision
    # The previous version has the subject digest as `argsDigest`.
    digest = details.get("subjectDigest") or details.get("argsDigest")
    call = details.get("kind"), details.get("tool"), details.get("runId"), digest
    return details.get("confirmationId") == confirmation.id and call == (
        decision.kind,
        decision.tool,
        decision.run_id,
        decision.subject_digest,
    )


def _is_request(row: AuditEntry, decision: Decision) -> bool:
    """Return whether the row says that this caller requested it, for this position in a run.
    Workers of the previous version do not record the position.
    """
    recorded = row.metadata.get("callKey")
    is_for_call = recorded is None or recorded == _step_key(decision)
    return row.action == _REQUESTED and row.actor == decision.principal_id and is_for_call


def _is_answer(row: AuditEntry, confirmation: Confirmation) -> bool:
    """Return whether the row says that exactly this answer was given, and had no MAC then."""
    at = confirmation.decided_at
    return (
        row.action == _CONFIRMED
        and not row.metadata.get("hasMac")
        and row.actor == confirmation.decided_by
        and row.metadata.get("how") == confirmation.decided_how
        and at is not None
        and row.created_at - _RECORDED_WITHIN <= at <= row.created_at
    )


def _message(confirmation: Confirmation, answer: Answer) -> bytes:
    at = None if answer.decided_at is None else answer.decided_at.astimezone(UTC).isoformat()
    answered = [str(answer.status), at, answer.decided_by, answer.decided_how]
    return json.dumps([confirmation.id, _call(confirmation.decision), answered]).encode()


def _call(decision: Decision) -> list[object]:
    """Return what identifies a call and what was shown of it. The target's state is part of the
    subject digest.
    """
    caller = decision.tenant_id, decision.workspace_id, decision.principal_id
    return [
        decision.pk,
        decision.kind,
        *caller,
        _step_key(decision),
        decision.subject_digest,
        _shown(decision),
    ]


def _step_key(decision: Decision) -> str | None:
    """Return the identity of a step's call. That of a direct call is no part of its approval: it is
    removed when the same call is made again.
    """
    return decision.call_key if decision.run_id else None


def _shown(decision: Decision) -> str:
    try:
        shown = [open_arguments(decision), open_basis(decision)]
    except CannotBeShown:  # it can be refused only
        return ""
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()
