"""Outcomes of decisions: opened with the decision, reported once.

A report is written under the lock of the user's row, together with what is learned from it: the
forecast errors, the changes of the state, and for a success with a procedure the suggested success
path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.foundation.errors import (
    DecisionNotConfirmed,
    InvalidInput,
    OutcomeNotFound,
    OutcomeReported,
)
from decisions.foundation.validation.json_output import json_digest
from decisions.identity.principals import Principal
from decisions.memory.learning import Forecast, learn
from decisions.memory.owner import Owner, owner_of
from decisions.models import Confirmation, ConfirmationStatus, Decision, Outcome, OutcomeStatus

NOT_PENDING = "pending outcome not found"  # S2's text
_ABOUT_THE_CALL = {"decision_id", "user_id"}


def open_outcome(decision: Decision, forecast: Forecast) -> Outcome:
    """Create the pending outcome of a chat decision, in the caller's transaction."""
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
    """Record the outcome of a decision and learn from it. Commits.

    The identical report again returns the record of the first.

    Args:
        call: arguments that are valid by OUTCOME_INPUT.

    Raises:
        Forbidden, ForbiddenUser: As `owner_of`.
        InvalidInput: failure_type is set for a success.
        OutcomeNotFound: No decision of this user with this id waits for an outcome.
        OutcomeReported: The decision has a different outcome.
        DecisionNotConfirmed: The decision is high-risk and no person confirmed it.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    owner = owner_of(principal, call["user_id"], scope="continuity:write")
    failure = call.get("failure_type")
    if failure and call["outcome_status"] == OutcomeStatus.SUCCESS:
        raise InvalidInput("failure_type: a success has none.")
    # A decision has one outcome, so its id serves as the idempotency key of the confirmation.
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
    details = {
        "status": outcome.status,
        "failureType": outcome.failure_type,
        "systemCaused": outcome.system_caused,
    }
    _record(owner, principal, call, "outcome.reported", **details)
    return describe_outcome(outcome)


def _digest_of(call: Mapping[str, Any]) -> str:
    report = {
        name: value
        for name, value in call.items()
        # None and False mean the same as an argument that is left out.
        if name not in _ABOUT_THE_CALL and value is not None and value is not False
    }
    return json_digest(report).hex()


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
    learn(outcome, Forecast(**outcome.forecast), call)
    outcome.save()


def _failure_type(outcome: Outcome, call: Mapping[str, Any]) -> str | None:
    """Return the reported failure type, or derive one: later messages are scored by the types of
    past failures, so every failure needs one.
    """
    reported: str | None = call.get("failure_type")
    if reported or call["outcome_status"] != OutcomeStatus.FAILED:
        return reported
    if outcome.system_caused:
        return "system_error"
    return "high_risk" if outcome.layer == "L4" else "repeat_error"


def describe_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return a reported outcome as the APIs represent it."""
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
    owner: Owner, principal: Principal, call: Mapping[str, Any], action: str, **details: Any
) -> None:
    scope, details = (owner.tenant_id, owner.workspace_id), {"userId": owner.user_id, **details}
    record(AuditEvent(action, principal.id, "decision", str(call["decision_id"]), *scope, details))
