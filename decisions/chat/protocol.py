"""The protocol for one turn (S2): return questions, or write the decision and return the reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from decisions.audit.record import AuditEvent, record
from decisions.authorization.confirmations import OpenedConfirmation, open_confirmation
from decisions.authorization.sealed_arguments import seal_arguments
from decisions.chat.analysis.intake import questions_for
from decisions.chat.analysis.reality_first import RealityCheck, check_reality
from decisions.chat.conversation import ChatTurn
from decisions.chat.evaluation import Evaluation
from decisions.chat.history.similarity import signature
from decisions.chat.responder import Composed, ReplyRequest
from decisions.foundation.infra.ids import new_id
from decisions.identity.principals import Principal
from decisions.memory.learning import Forecast
from decisions.memory.outcomes import open_outcome
from decisions.memory.owner import Owner
from decisions.models import Decision, DecisionKind, Event

INTENT_CHARS = 500  # of the request, as the intent of its forecast


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The response to a message; only the first response has the `clear_token`."""

    session_id: str
    decided: ReplyRequest
    response: str
    trace: Mapping[str, Any]
    decision: Mapping[str, float] | None = None
    decision_id: int | None = None
    user_state: Mapping[str, Any] | None = None
    clear_token: str | None = None

    def without_token(self) -> dict[str, Any]:
        """Return the body for repeated calls, without the confirm token."""
        return {
            "session_id": self.session_id,
            "response": self.response,
            "asked_questions": list(self.decided.questions),
            "decision": self.decision,
            "decision_id": self.decision_id,
            "user_state": self.user_state,
            "trace": self.trace,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the body for the first call."""
        body = self.without_token()
        if self.clear_token is not None:
            required = {**self.trace["high_risk_confirmation"], "confirm_token": self.clear_token}
            body["trace"] = {**self.trace, "high_risk_confirmation": required}
        return body


def ask_questions(turn: ChatTurn) -> ChatReply:
    """Return the questions about missing slots (Ask-Then-Act); nothing is decided."""
    reality = _reality(turn)
    decided = ReplyRequest(
        mode="clarify_first",
        language=turn.language,
        message=turn.masked_message,
        task_type=turn.task_type,
        questions=questions_for(turn.missing, turn.language),
        hint=reality.question,
    )
    trace = {
        "trace_id": new_id("trc_"),
        "mode": decided.mode,
        "task_type": turn.task_type,
        "missing_slots": list(turn.missing),
        "reality_first": reality.as_dict(),
    }
    text = Composed().compose(decided)
    return ChatReply(turn.conversation.session_id, decided, text, trace)


def decide(owner: Owner, principal: Principal, turn: ChatTurn, evaluation: Evaluation) -> ChatReply:
    """Write the decision on a turn with its event, pending outcome, confirmation and audit row, in
    the caller's transaction.
    """
    decision = _write_decision(owner, principal, turn, evaluation)
    opened = open_confirmation(decision) if evaluation.gate.hit else None
    event = _write_event(owner, turn, evaluation, decision)
    outcome = open_outcome(decision, _forecast(turn, evaluation))
    reality = _reality(turn)
    trace: dict[str, Any] = {
        "trace_id": new_id("trc_"),
        "mode": str(evaluation.mode),
        "task_type": turn.task_type,
        "entry_id": event.pk,
        "decision_id": decision.pk,
        "outcome_id": outcome.pk,
        "outcome_status": "pending_actual_feedback",
        "main_constraint": evaluation.state.main_constraint,
        "l4_gate": evaluation.gate.as_dict(),
        "feature_penalty": evaluation.score.feature_penalty,
        "matched_failure_types": list(evaluation.past.matched_failure_types),
        "high_risk_confirmation": _confirmation(decision, opened),
        "reality_first": reality.as_dict(),
        "best_success_path": evaluation.past.best_path,
        "continuity_failures": list(evaluation.past.failures),
    }
    Decision.objects.filter(pk=decision.pk).update(trace=trace)
    _record(principal, decision, trace["trace_id"])
    decided = _decided(turn, evaluation, reality, opened)
    return ChatReply(
        turn.conversation.session_id,
        decided,
        Composed().compose(decided),
        trace,
        decision=evaluation.score.as_dict(),
        decision_id=decision.pk,
        user_state=evaluation.state.as_dict(),
        clear_token=opened.clear_token if opened else None,
    )


def _reality(turn: ChatTurn) -> RealityCheck:
    return check_reality(
        turn.message,
        mode=settings.CONTINUITY_REALITY_FIRST,
        hints_off=turn.conversation.hints_off,
        language=turn.language,
    )


def _write_decision(
    owner: Owner, principal: Principal, turn: ChatTurn, evaluation: Evaluation
) -> Decision:
    decision = Decision(
        **owner.columns,
        principal_id=principal.id,
        trust=principal.trust,
        session_id=turn.conversation.session_id,
        kind=DecisionKind.CHAT,
        mode=evaluation.mode,
        task_type=turn.task_type,
        score=evaluation.score.value,
        parts={**evaluation.score.as_dict(), "feature_penalty": evaluation.score.feature_penalty},
        rule=evaluation.gate.rule,
        reason=evaluation.gate.reason[:500],
        subject_digest=turn.exact.digest(),
        arguments={"message": turn.masked.message, "slots": dict(turn.masked.slots)},
        created_at=datetime.now(UTC),
    )
    if evaluation.gate.hit:
        decision.sealed_arguments = seal_arguments(decision, turn.exact.as_arguments())
    decision.save(force_insert=True)
    return decision


def _write_event(owner: Owner, turn: ChatTurn, evaluation: Evaluation, decision: Decision) -> Event:
    return Event.objects.create(
        **owner.columns,
        decision=decision,
        text=turn.masked.message,
        task_type=turn.task_type,
        signature=signature(turn.masked.message),
        impact=evaluation.impact.vector,
        confidence=evaluation.impact.confidence,
        irreversible=evaluation.impact.irreversible,
        system_caused=evaluation.impact.system_caused,
        cost=evaluation.cost,
        layer=evaluation.layer,
        created_at=decision.created_at,
    )


def _forecast(turn: ChatTurn, evaluation: Evaluation) -> Forecast:
    return Forecast(
        impact=evaluation.impact.vector,
        confidence=evaluation.impact.confidence,
        cost=evaluation.cost,
        layer=evaluation.layer,
        irreversible=evaluation.impact.irreversible,
        intent=turn.masked.message[:INTENT_CHARS],
        slots=turn.masked.slots,
    )


def _confirmation(decision: Decision, opened: OpenedConfirmation | None) -> dict[str, Any]:
    """Return `high_risk_confirmation` without the token, with its endpoint if there is a token."""
    if opened is None:
        return {"required": False}
    confirmation = opened.confirmation
    fields: dict[str, Any] = {
        "required": True,
        "confirmation_id": confirmation.id,
        "expires_at": confirmation.expires_at.isoformat(),
    }
    if opened.clear_token is not None:
        fields["confirm_endpoint"] = f"/api/v1/decision/{decision.pk}/confirm"
    return fields


def _decided(
    turn: ChatTurn, evaluation: Evaluation, reality: RealityCheck, opened: OpenedConfirmation | None
) -> ReplyRequest:
    path: Mapping[str, Any] = evaluation.past.best_path or {}
    return ReplyRequest(
        mode=str(evaluation.mode),
        language=turn.language,
        message=turn.masked.message,
        task_type=turn.task_type,
        rule=evaluation.gate.rule,
        delivery=str(opened.confirmation.delivery) if opened else "",
        best_path=str(path.get("name", "")),
        failure_types=evaluation.past.matched_failure_types,
        hint=reality.question,
        decision=evaluation.score.as_dict(),
    )


def _record(principal: Principal, decision: Decision, trace_id: str) -> None:
    details = {
        "userId": decision.user_id,
        "mode": decision.mode,
        "taskType": decision.task_type,
        "score": decision.score,
        "rule": decision.rule,
        "traceId": trace_id,
    }
    record(
        AuditEvent(
            "decision.made",
            principal.id,
            "decision",
            str(decision.pk),
            decision.tenant_id,
            decision.workspace_id,
            details,
        )
    )
