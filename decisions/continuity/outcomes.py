"""What became of a decision, and what is learnt from it (continuity.md, "outcome").

An outcome is opened with its decision and reported once, under the lock of the user's row. What is
learnt is written in the same transaction: how far the forecast was off, where the state moved and
why, and, of a success that says how, the success path that it suggests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import orjson
from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.continuity.learning import Forecast, learn
from decisions.continuity.owner import Owner, owner_of
from decisions.errors import (
    DecisionNotConfirmed,
    InvalidInput,
    OutcomeNotFound,
    OutcomeReported,
)
from decisions.identity.principals import Principal
from decisions.models import Confirmation, ConfirmationStatus, Decision, Outcome, OutcomeStatus

NOT_PENDING = "pending outcome not found"  # S2's text
_ABOUT_THE_CALL = {"decision_id", "user_id"}


def open_outcome(decision: Decision, forecast: Forecast) -> Outcome:
    """Have a decision on words wait for its outcome, in the caller's transaction; its id is
    `outcome_id`.
    """
    return Outcome.objects.create(
        decision=decision,
        tenant_id=decision.tenant_id,
        workspace_id=decision.workspace_id,
        user_id=decision.user_id or "",
        opened_at=decision.created_at,
        forecast=asdict(forecast),
        layer=forecast.layer,
    )


def report_outcome(*, principal: Principal, call: Mapping[str, Any]) -> dict[str, Any]:
    """Report what became of a decision, and learn from it. `call` is valid by OUTCOME_INPUT.

    Commits before returning; the identical report again returns the record of the first.

    Raises:
        Forbidden, ForbiddenUser: As `owner_of`.
        InvalidInput: A kind of failure for a success.
        OutcomeNotFound: No such decision of this user waits for an outcome.
        OutcomeReported: It has another outcome.
        DecisionNotConfirmed: It is high-risk, and nobody said yes.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    owner = owner_of(principal, call["user_id"], scope="continuity:write")
    failure = call.get("failure_type")
    if failure and call["outcome_status"] == OutcomeStatus.SUCCESS:
        raise InvalidInput("failure_type: a success has none.")
    # A decision has one outcome: that is the key under which a person's yes to this is known again.
    use = tool_call_request(
        principal, "continuity_report_outcome", call, key=str(call["decision_id"])
    )
    approval = admit_call(use)
    try:
        with transaction.atomic():
            return _report(owner, principal, call, approval)
    except (OutcomeNotFound, OutcomeReported, DecisionNotConfirmed) as refusal:
        _record(owner, principal, call, "outcome.refused", why=refusal.code)
        refusal.is_recorded = True
        raise


def _report(
    owner: Owner, principal: Principal, call: Mapping[str, Any], approval: Confirmation | None
) -> dict[str, Any]:
    owner.lock()
    outcome = (
        Outcome.objects.select_related("decision")
        .filter(
            decision_id=call["decision_id"], workspace_id=owner.workspace_id, user_id=owner.user_id
        )
        .first()
    )
    if outcome is None:
        raise OutcomeNotFound(NOT_PENDING)
    digest = _digest_of(call)
    if outcome.status is not None:
        if outcome.report_digest != digest:
            raise OutcomeReported(NOT_PENDING)
        return describe_outcome(outcome)
    _require_confirmed(outcome.decision)
    use_approval(approval)
    _write(outcome, call, digest=digest, by=principal.id)
    told = {
        "status": outcome.status,
        "failureType": outcome.failure_type,
        "systemCaused": outcome.system_caused,
    }
    _record(owner, principal, call, "outcome.reported", **told)
    return describe_outcome(outcome)


def _digest_of(call: Mapping[str, Any]) -> str:
    said = {
        name: value
        for name, value in call.items()
        if name not in _ABOUT_THE_CALL and value is not None and value is not False  # as left out
    }
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _require_confirmed(decision: Decision) -> None:
    confirmation = Confirmation.objects.filter(decision=decision).first()
    if confirmation is not None and confirmation.status != ConfirmationStatus.CONFIRMED:
        raise DecisionNotConfirmed(
            f"Decision {decision.pk} is high-risk and was not confirmed: it is"
            f" {confirmation.status}."
        )


def _write(outcome: Outcome, call: Mapping[str, Any], *, digest: str, by: str) -> None:
    outcome.status, outcome.note = call["outcome_status"], call["outcome_note"]
    outcome.system_caused = call.get("system_caused", False)
    outcome.failure_type = _failure_type(outcome, call)
    outcome.actual_impact = call.get("actual_impact_vector")
    outcome.report_digest, outcome.reported_by = digest, by
    outcome.reported_at = datetime.now(UTC)
    outcome.save()
    lesson = learn(outcome, Forecast(**outcome.forecast), call)
    outcome.impact_error, outcome.cost_error = lesson.impact_error, lesson.cost_error
    outcome.actual_cost, outcome.proposal = lesson.actual_cost, lesson.proposal
    outcome.save()


def _failure_type(outcome: Outcome, call: Mapping[str, Any]) -> str | None:
    """Return the kind of failure that was told, or that follows from what was told: every failure
    has one, for it is by kinds that later messages are made to pay for it.
    """
    told: str | None = call.get("failure_type")
    if told or call["outcome_status"] != OutcomeStatus.FAILED:
        return told
    if outcome.system_caused:
        return "system_error"
    return "high_risk" if outcome.layer == "L4" else "repeat_error"


def describe_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return a reported outcome as every door shows it."""
    return {
        "decision_id": outcome.decision_id,
        "outcome_id": outcome.pk,
        "outcome_status": outcome.status,
        "outcome_note": outcome.note,
        "system_caused": outcome.system_caused,
        "failure_type": outcome.failure_type,
        "created_at": outcome.reported_at.isoformat() if outcome.reported_at else None,
        "impact_error": outcome.impact_error,
        "cost_error": outcome.cost_error,
        "proposed_success_path": outcome.proposal,
    }


def _record(
    owner: Owner, principal: Principal, call: Mapping[str, Any], action: str, **told: Any
) -> None:
    place, told = (owner.tenant_id, owner.workspace_id), {"userId": owner.user_id, **told}
    record(AuditEvent(action, principal.id, "decision", str(call["decision_id"]), *place, told))
